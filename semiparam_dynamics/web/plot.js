// A plot of curves over an axis, and the rows of a table.
"use strict";
const short = v => Math.abs(v) >= 1000 || (v !== 0 && Math.abs(v) < 0.001) ? v.toExponential(1) : +v.toPrecision(3);

function plot(canvas, curves, from, to, pause, floor, ceiling, unit = " s") {
  const pen = canvas.getContext("2d"), ratio = window.devicePixelRatio || 1;
  const w = canvas.clientWidth, h = canvas.clientHeight;
  canvas.width = Math.round(w * ratio); canvas.height = Math.round(h * ratio);
  pen.setTransform(ratio, 0, 0, ratio, 0, 0); pen.clearRect(0, 0, w, h);
  let low = floor === undefined ? Infinity : floor, high = ceiling === undefined ? -Infinity : ceiling;
  for (const curve of curves) for (const [, y] of curve.points) if (y !== null) { low = Math.min(low, y); high = Math.max(high, y); }
  if (!(high > -Infinity) || !(low < Infinity)) return;
  if (high - low < 1e-9) { low -= floor === undefined ? 0.5 : 0; high += 0.5; }
  const left = 46, bottom = 16, x = t => left + (t - from) / Math.max(to - from, 1e-9) * (w - left - 4);
  const y = v => 5 + (high - v) / (high - low) * (h - bottom - 9);
  pen.font = "11px sans-serif"; pen.fillStyle = "#57606a"; pen.strokeStyle = "#e4e8ec"; pen.lineWidth = 1;
  for (let k = 0; k <= 2; k++) {
    const v = low + (high - low) * k / 2;
    pen.beginPath(); pen.moveTo(left, y(v)); pen.lineTo(w - 4, y(v)); pen.stroke();
    pen.textAlign = "right"; pen.fillText(short(v), left - 4, y(v) + (k === 2 ? 8 : k ? 4 : 0));
  }
  pen.textAlign = "left"; pen.fillText(`${from.toFixed(0)}${unit}`, left, h - 3);
  pen.textAlign = "right"; pen.fillText(`${to.toFixed(0)}${unit}`, w - 4, h - 3);
  for (const curve of curves) {
    pen.strokeStyle = curve.color; pen.lineWidth = curve.width; pen.beginPath();
    let on = false, before = -Infinity;
    for (const [t, v] of curve.points) {
      if (t - before > pause) on = false; // nothing was measured meanwhile
      before = t;
      if (v === null) { on = false; continue; }
      if (on) pen.lineTo(x(t), y(v)); else pen.moveTo(x(t), y(v));
      on = true;
    }
    pen.stroke();
  }
}

function rows(table, pairs, none) {
  table.replaceChildren(...(pairs.length ? pairs : [[none, ""]]).map(pair => {
    const row = document.createElement("tr");
    for (const text of pair) { const cell = document.createElement("td"); cell.textContent = text; row.append(cell); }
    return row;
  }));
}
