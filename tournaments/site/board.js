"use strict";
/* Boards as SVG. Text of games goes in as text only. */
const drawBoard = (() => {
  const NS = "http://www.w3.org/2000/svg", SIZE = 52, EDGE = 26;
  const SOLID = { "♔": "♚", "♕": "♛", "♖": "♜", "♗": "♝", "♘": "♞", "♙": "♟" };
  const make = (parent, name, facts, text) => {
    const node = document.createElementNS(NS, name);
    for (const key in facts) node.setAttribute(key, facts[key]);
    if (text !== undefined) node.textContent = text;
    parent.append(node);
    return node;
  };
  const ground = (svg, style, rows, columns) => {
    const wide = columns * SIZE, high = rows * SIZE;
    if (style === "holes") make(svg, "rect", { class: "frame", x: EDGE, y: EDGE, width: wide, height: high, rx: 10 });
    for (let row = 0; row < rows; row++) {
      for (let column = 0; column < columns; column++) {
        const x = EDGE + column * SIZE, y = EDGE + row * SIZE, half = SIZE / 2;
        if (style === "squares") make(svg, "rect", { class: (row + column) % 2 ? "dark" : "light", x, y, width: SIZE, height: SIZE });
        if (style === "holes") make(svg, "circle", { class: "hole", cx: x + half, cy: y + half, r: SIZE * 0.4 });
        if (style === "lines") {
          make(svg, "line", { class: "wire", x1: x + (column ? 0 : half), x2: x + (column < columns - 1 ? SIZE : half), y1: y + half, y2: y + half });
          make(svg, "line", { class: "wire", x1: x + half, x2: x + half, y1: y + (row ? 0 : half), y2: y + (row < rows - 1 ? SIZE : half) });
        }
      }
    }
  };
  const piece = (svg, style, text, owner, x, y) => {
    const colour = owner === undefined ? "" : `o${owner % 8}`;
    const small = [...text].length > 2 ? " small" : "";
    if (style !== "squares" && owner !== undefined) {
      const disc = make(svg, "g", { class: "disc" });
      make(disc, "circle", { class: colour, cx: x, cy: y, r: SIZE * 0.4 });
      make(disc, "text", { x, y, class: small }, text);
    } else if (SOLID[text] || /^[♚♛♜♝♞♟]$/u.test(text)) {
      make(svg, "text", { x, y: y + 1, class: `piece ${colour}` }, (SOLID[text] || text) + "\ufe0e");
    } else {
      make(svg, "text", { x, y, class: colour + small }, text);
    }
  };
  const ring = (svg, style, name, row, column) => {
    const x = EDGE + column * SIZE, y = EDGE + row * SIZE;
    if (style === "squares") make(svg, "rect", { class: name, x: x + 2, y: y + 2, width: SIZE - 4, height: SIZE - 4, rx: 3 });
    else make(svg, "circle", { class: name, cx: x + SIZE / 2, cy: y + SIZE / 2, r: SIZE * 0.4 });
  };
  return (board, head, fresh) => {
    const rows = board.rows.length, columns = board.rows[0].length;
    const wide = columns * SIZE + 2 * EDGE, high = rows * SIZE + 2 * EDGE;
    const told = board.rows.map((row) => row.map((cell) => cell || ".").join(" ")).join("; ");
    const svg = document.createElementNS(NS, "svg");
    for (const [key, value] of [["viewBox", `0 0 ${wide} ${high}`], ["class", "board"], ["role", "img"], ["aria-label", `Board, by rows from the top: ${told}`]]) svg.setAttribute(key, value);
    ground(svg, head.style, rows, columns);
    board.rows.forEach((cells, row) => cells.forEach((cell, column) => {
      if (cell) piece(svg, head.style, cell, Object.hasOwn(head.owners, cell) ? head.owners[cell] : undefined, EDGE + (column + 0.5) * SIZE, EDGE + (row + 0.5) * SIZE);
    }));
    for (const [row, column] of fresh) ring(svg, head.style, "new", row, column);
    for (const [row, column] of board.marked) ring(svg, head.style, "mark", row, column);
    head.down.forEach((label, row) => make(svg, "text", { class: "label", x: EDGE / 2, y: EDGE + (row + 0.5) * SIZE }, label));
    head.across.forEach((label, column) => make(svg, "text", { class: "label", x: EDGE + (column + 0.5) * SIZE, y: high - EDGE / 2 }, label));
    return svg;
  };
})();
