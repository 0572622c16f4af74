"use strict";
/* A game move by move. Whatever players wrote goes in as text, never as markup. */
(() => {
  const story = JSON.parse(document.getElementById("story").textContent);
  const get = (id) => document.getElementById(id);
  const LONG = 4000, HIDDEN = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/u;
  const last = story.plies.length + 1;
  let place = 0, seat = null;

  const make = (name, kind, text) => {
    const node = document.createElement(name);
    if (kind) node.className = kind;
    if (text !== undefined) node.textContent = text;
    return node;
  };
  /* Text with what hides or turns it shown as escapes. */
  const write = (node, text) => {
    let plain = "";
    const flush = () => { if (plain) node.append(plain); plain = ""; };
    for (const char of text) {
      if (char === "\n" || char === "\t" || !HIDDEN.test(char)) { plain += char; continue; }
      flush();
      node.append(make("span", "esc", `U+${char.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`));
    }
    flush();
    return node;
  };
  const said = (text, kind) => {
    const box = make("div");
    const pre = make("pre", `said ${kind || ""}`);
    pre.tabIndex = 0;
    write(pre, text.length > LONG ? text.slice(0, LONG) : text);
    box.append(pre);
    if (text.length > LONG) {
      const more = make("button", "", `Show all ${text.length.toLocaleString("en")} characters`);
      more.type = "button";
      more.addEventListener("click", () => { pre.replaceChildren(); write(pre, text); more.remove(); });
      box.append(more);
    }
    return box;
  };
  const named = (at) => `seat ${at}: ${story.seats[at]}`;
  const fact = (parent, name, text, kind) => {
    const line = make("p", "facts", `${name} `);
    line.append(write(make(kind ? "span" : "code", kind), text));
    parent.append(line);
    return line;
  };
  const block = (parent, name, text, kind) => parent.append(make("h4", "", name), said(text, kind));

  const attempt = (card, one, which) => {
    if (one.thought !== null) block(card, `Thought${which}`, story.texts[one.thought], "thought");
    const raw = story.texts[one.raw];
    if (raw) block(card, `Replied${which}`, raw);
    else card.append(make("p", "facts", `Replied${which}: nothing`));
    const line = make("p", "facts", "The referee read: ");
    line.append(make("span", `verdict ${one.verdict}`, one.verdict));
    if (one.reason) write(line.appendChild(make("span", "", ", ")), one.reason);
    card.append(line);
    if (one.used.length) write(card.appendChild(make("p", "soft")), one.used.join(" · "));
  };
  const turn = (one) => {
    const card = make("div", "turn");
    const title = make("h3");
    title.append(make("span", `swatch o${one.seat % 8}`));
    write(title, named(one.seat));
    card.append(title);
    one.tries.forEach((a, k) => attempt(card, a, one.tries.length > 1 ? `, try ${k + 1}` : ""));
    if (!one.tries.length) card.append(make("p", "facts", "Not asked: the seat had forfeited before"));
    if (one.action === null) card.append(make("p", "facts", "Played: nothing"));
    else if (one.action.length > 100 || one.action.includes("\n")) block(card, one.own ? "Played" : "Played in its place", one.action);
    else fact(card, one.own ? "Played:" : "Played in its place:", one.action);
    if (one.legal !== null) card.append(make("p", "soft", `${one.legal} legal ${one.legal === 1 ? "action" : "actions"}`));
    if (one.reward) fact(card, "Earned until its next turn:", one.reward);
    block(card, "What it was shown", story.texts[one.view]);
    return card;
  };
  const lastView = (who) => {
    if (place === last && story.final.length) return ["shown at the end", story.texts[story.final[who]]];
    for (let k = Math.min(place, story.plies.length); k > 0; k--) {
      const own = story.plies[k - 1].find((one) => one.seat === who);
      if (own) return [`shown at ply ${own.ply}`, story.texts[own.view]];
    }
    return ["its rules; it was shown nothing yet", story.texts[story.rules[who]]];
  };
  const table = () => {
    const box = get("table");
    box.replaceChildren();
    if (seat !== null) {
      const [when, text] = lastView(seat);
      block(box, `Seat ${seat}, ${when}`, text);
      return;
    }
    const scene = story.scenes[Math.min(place, story.plies.length)];
    if (!scene) box.append(write(make("p", "soft"), `No board here: ${story.broken}`));
    else if (scene.board === undefined) box.append(said(story.texts[scene.table]));
    else box.append(drawBoard(story.boards[scene.board], story.heads[story.boards[scene.board].head], place ? scene.new : []));
  };
  const cards = () => {
    const box = get("turns");
    box.replaceChildren();
    if (place === 0) {
      box.append(make("h2", "", "Before the first move"));
      new Set(story.rules).forEach((number) => {
        const seats = story.rules.flatMap((rule, at) => (rule === number ? [at] : []));
        if ((seat === null || seats.includes(seat)) && story.texts[number]) block(box, `Rules, as told to seat ${seats.join(", ")}`, story.texts[number]);
      });
    } else if (place === last) {
      box.append(make("h2", "", "The end"));
      for (const [name, text] of story.end) {
        const line = make("p", "facts");
        write(line, `${name}: `);
        line.append(write(make("b"), text));
        box.append(line);
      }
      story.final.forEach((shown, at) => { if (seat === null || seat === at) block(box, `Last shown to seat ${at}`, story.texts[shown]); });
    } else {
      const turns = story.plies[place - 1];
      const own = turns.filter((one) => seat === null || one.seat === seat);
      own.forEach((one) => box.append(turn(one)));
      if (!own.length) write(box.appendChild(make("p", "soft")), `Seat ${seat} was not asked here; ${turns.map((one) => named(one.seat)).join(", ")} played.`);
    }
  };
  const where = () => {
    if (place === 0) return "Start";
    if (place === last) return `End, after ${story.plies.length} plies`;
    const turns = story.plies[place - 1];
    const played = turns.length === 1 && turns[0].action !== null ? `: ${turns[0].action.slice(0, 60)}` : "";
    return `Ply ${place} of ${story.plies.length}${played}`;
  };
  const show = () => {
    write((get("where").replaceChildren(), get("where")), where());
    get("slider").value = place;
    get("slider").setAttribute("aria-valuetext", where());
    get("seat").value = seat === null ? "" : seat;
    get("first").disabled = get("back").disabled = place === 0;
    get("last").disabled = get("on").disabled = place === last;
    table();
    cards();
  };
  const go = (to) => {
    const asked = Math.min(Math.max(to, 0), last);
    const hash = `#${asked}${seat === null ? "" : `,${seat}`}`;
    if (asked !== place || hash !== location.hash) { place = asked; history.replaceState(null, "", hash); show(); }
  };
  const told = () => {
    const [to, who] = location.hash.slice(1).split(",").map((text) => Number.parseInt(text, 10));
    seat = who >= 0 && who < story.seats.length ? who : null;
    place = to > 0 ? Math.min(to, last) : 0;
    show();
  };
  get("slider").max = last;
  get("slider").addEventListener("input", (event) => go(Number(event.target.value)));
  for (const [id, to] of [["first", () => 0], ["back", () => place - 1], ["on", () => place + 1], ["last", () => last]]) get(id).addEventListener("click", () => go(to()));
  get("seat").addEventListener("change", (event) => { seat = event.target.value === "" ? null : Number(event.target.value); go(place); });
  get("link").addEventListener("click", async () => {
    go(place);
    if (!location.hash) history.replaceState(null, "", `#${place}`);
    try {
      await navigator.clipboard.writeText(location.href);
      get("link").textContent = "Copied";
    } catch {
      get("link").textContent = "Copy it from the address bar";
    }
    setTimeout(() => { get("link").textContent = "Copy link"; }, 2000);
  });
  document.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (["SELECT", "INPUT", "TEXTAREA"].includes(event.target.tagName)) return;
    const to = { ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: last }[event.key];
    if (to !== undefined) { event.preventDefault(); go(to); }
  });
  let touch = null;
  get("stage").addEventListener("touchstart", (event) => {
    const point = event.touches[0];
    touch = event.touches.length === 1 && event.target.tagName !== "INPUT" ? [point.clientX, point.clientY] : null;
  }, { passive: true });
  get("stage").addEventListener("touchend", (event) => {
    if (!touch) return;
    const point = event.changedTouches[0], across = point.clientX - touch[0], down = point.clientY - touch[1];
    touch = null;
    if (Math.abs(across) > 40 && Math.abs(across) > 2 * Math.abs(down)) go(place + (across < 0 ? 1 : -1));
  }, { passive: true });
  window.addEventListener("hashchange", told);
  get("replay").hidden = false;
  told();
})();
