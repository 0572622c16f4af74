"use strict";
/* Search and pages for the list of games. #a=0&b=3 asks for two agents, #q=words for a text. */
(() => {
  const SIZE = 50;
  const start = () => {
    const table = document.getElementById("games");
    if (!table) return;
    const rows = [...table.tBodies[0].rows].map((row) => ({
      row, agents: row.dataset.agents.split(" "), text: row.textContent.toLowerCase(),
    }));
    const [search, one, two] = ["search", "one", "two"].map((id) => document.getElementById(id));
    let page = 0;
    const fits = (line) => {
      const left = [...line.agents];
      for (const wanted of [one.value, two.value]) {
        if (!wanted) continue;
        const at = left.indexOf(wanted);
        if (at < 0) return false;
        left.splice(at, 1);
      }
      return search.value.toLowerCase().split(/\s+/).every((word) => line.text.includes(word));
    };
    const show = () => {
      const found = rows.filter(fits);
      const last = Math.max(0, Math.ceil(found.length / SIZE) - 1);
      page = Math.min(Math.max(page, 0), last);
      const shown = new Set(found.slice(page * SIZE, (page + 1) * SIZE));
      for (const line of rows) line.row.hidden = !shown.has(line);
      const first = found.length ? page * SIZE + 1 : 0;
      document.getElementById("page").textContent = `${first}–${page * SIZE + shown.size} of ${found.length}`;
      document.getElementById("back").disabled = page === 0;
      document.getElementById("on").disabled = page === last;
      document.getElementById("none").hidden = found.length > 0;
      table.hidden = !found.length;
    };
    const told = () => {
      const asked = new URLSearchParams(location.hash.slice(1));
      search.value = asked.get("q") || "";
      for (const [select, key] of [[one, "a"], [two, "b"]]) {
        select.value = asked.get(key) || "";
        if (select.selectedIndex < 0) select.value = "";
      }
      page = 0;
      show();
    };
    const changed = () => { page = 0; show(); };
    search.addEventListener("input", changed);
    one.addEventListener("change", changed);
    two.addEventListener("change", changed);
    document.getElementById("back").addEventListener("click", () => { page -= 1; show(); });
    document.getElementById("on").addEventListener("click", () => { page += 1; show(); });
    window.onhashchange = told;
    document.querySelector(".tools").hidden = false;
    told();
  };
  start();
  document.addEventListener("fresh", start);
})();
