"use strict";
/* The page again whenever its server says that something has changed; names arrive as the server escaped them. */
(() => {
  const source = new EventSource(document.body.dataset.live);
  let waiting = false, again = false;
  const show = (on) => document.querySelectorAll(".live").forEach((mark) => { mark.hidden = !on; });
  const refresh = async () => {
    if (waiting) { again = true; return; }
    waiting = true;
    let failed = false;
    try {
      const answer = await fetch(location.href.split("#")[0], { cache: "no-store" });
      if (answer.ok) {
        const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
        const focus = document.activeElement && document.activeElement.id;
        document.querySelector("main").replaceWith(document.adoptNode(fresh.querySelector("main")));
        document.dispatchEvent(new Event("fresh"));
        if (focus && document.getElementById(focus)) document.getElementById(focus).focus();
        show(source.readyState === EventSource.OPEN);
      }
      failed = !answer.ok;
    } catch { failed = true; /* the server is gone for a moment: the source connects again by itself */ }
    waiting = false;
    if (again) { again = false; refresh(); } else if (failed) setTimeout(refresh, 1000);
  };
  source.addEventListener("change", refresh);
  source.addEventListener("open", () => show(true));
  source.addEventListener("error", () => show(false));
})();
