// A robot of capsules, arrows and balls on a canvas; turned by dragging, enlarged by the wheel.
"use strict";
class Scene {
  constructor(canvas) {
    this.canvas = canvas; this.pen = canvas.getContext("2d");
    this.yaw = 0.9; this.pitch = 0.35; this.zoom = 1; this.fit = null;
    this.capsules = []; this.radii = []; this.marked = []; this.arrows = []; this.balls = [];
    this.trail = []; this.bad = [];
    let from = null;
    canvas.addEventListener("pointerdown", e => { from = [e.clientX, e.clientY]; canvas.setPointerCapture(e.pointerId); });
    canvas.addEventListener("pointerup", () => { from = null; });
    canvas.addEventListener("pointermove", e => {
      if (!from) return;
      this.yaw -= (e.clientX - from[0]) * 0.01;
      this.pitch = Math.max(-1.4, Math.min(1.5, this.pitch + (e.clientY - from[1]) * 0.01));
      from = [e.clientX, e.clientY]; this.draw();
    });
    canvas.addEventListener("wheel", e => {
      e.preventDefault();
      this.zoom = Math.max(0.3, Math.min(6, this.zoom * Math.exp(-e.deltaY * 0.001))); this.draw();
    }, { passive: false });
  }
  // Enclose all ends with some room, in a box that only grows: the view must not follow the motion.
  include(points) {
    const f = this.fit || (this.fit = { low: [1e9, 1e9, 1e9], high: [-1e9, -1e9, -1e9] });
    for (const p of points) for (let k = 0; k < 3; k++) {
      f.low[k] = Math.min(f.low[k], p[k]); f.high[k] = Math.max(f.high[k], p[k]);
    }
  }
  set(capsules) { // each: six numbers, both ends in m
    this.capsules = capsules.map(c => [c.slice(0, 3), c.slice(3, 6)]);
    const shown = this.capsules.filter((_, k) => this.marked.length === 0 || this.marked[k]);
    this.include((shown.length ? shown : this.capsules).flat());
  }
  project(p) { // to x, y in pixels, pixels per m there, and depth
    const f = this.fit, c = [0, 1, 2].map(k => (f.low[k] + f.high[k]) / 2);
    const size = Math.max(0.3, Math.hypot(...[0, 1, 2].map(k => f.high[k] - f.low[k])));
    const [x, y, z] = [p[0] - c[0], p[1] - c[1], p[2] - c[2]];
    const cy = Math.cos(this.yaw), sy = Math.sin(this.yaw), cp = Math.cos(this.pitch), sp = Math.sin(this.pitch);
    const right = -sy * x + cy * y, ahead = cy * x + sy * y;
    const depth = 2.2 * size - (cp * ahead + sp * z), up = cp * z - sp * ahead;
    const scale = this.zoom * 1.75 * Math.min(this.width, this.height) / Math.max(depth, 0.05 * size);
    return [this.width / 2 + scale * right, this.height / 2 - scale * up, scale, depth];
  }
  line(a, b, width, color) {
    const pen = this.pen;
    pen.strokeStyle = color; pen.lineWidth = width; pen.lineCap = "round";
    pen.beginPath(); pen.moveTo(a[0], a[1]); pen.lineTo(b[0], b[1]); pen.stroke();
  }
  draw() {
    const ratio = window.devicePixelRatio || 1, canvas = this.canvas, pen = this.pen;
    this.width = canvas.clientWidth; this.height = canvas.clientHeight;
    if (canvas.width !== Math.round(this.width * ratio) || canvas.height !== Math.round(this.height * ratio)) {
      canvas.width = Math.round(this.width * ratio); canvas.height = Math.round(this.height * ratio);
    }
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, this.width, this.height);
    if (!this.fit) return;
    this.floor();
    const parts = this.capsules.map((c, k) => {
      const a = this.project(c[0]), b = this.project(c[1]);
      return { depth: (a[3] + b[3]) / 2, paint: () => {
        const width = Math.max(2, (this.radii[k] || 0.02) * (a[2] + b[2]));
        const marked = this.marked.length === 0 || this.marked[k], bad = this.bad[k];
        this.line(a, b, width + 2, bad ? "#8f1d18" : marked ? "#33506f" : "#c3cad1");
        this.line(a, b, width, bad ? "#e5484d" : marked ? "#7fa6d1" : "#e6eaee");
        this.line([a[0] - width / 5, a[1] - width / 5], [b[0] - width / 5, b[1] - width / 5], width / 4,
          bad ? "#f2a7a5" : marked ? "#b5cfe9" : "#f4f6f8");
      } };
    });
    for (const one of this.balls) {
      const at = this.project(one.at);
      parts.push({ depth: at[3] - 0.1, paint: () => {
        pen.fillStyle = one.color; pen.beginPath();
        pen.arc(at[0], at[1], Math.max(3, one.radius * at[2]), 0, 7); pen.fill();
        if (one.text) { pen.fillStyle = "#1f2328"; pen.font = "13px sans-serif"; pen.fillText(one.text, at[0] + 10, at[1] - 8); }
      } });
    }
    parts.sort((one, other) => other.depth - one.depth).forEach(part => part.paint());
    for (let k = 1; k < this.trail.length; k++)
      this.line(this.project(this.trail[k - 1]), this.project(this.trail[k]), 1.5, `rgba(31,95,196,${k / this.trail.length})`);
    for (const one of this.arrows) this.arrow(this.project(one.from), this.project(one.to), one.color);
  }
  arrow(a, b, color) {
    const length = Math.hypot(b[0] - a[0], b[1] - a[1]);
    if (length < 3) return;
    const u = [(b[0] - a[0]) / length, (b[1] - a[1]) / length], head = Math.min(14, length), pen = this.pen;
    const neck = [b[0] - head * u[0], b[1] - head * u[1]];
    this.line(a, neck, 5, color);
    pen.fillStyle = color; pen.beginPath(); pen.moveTo(b[0], b[1]);
    pen.lineTo(neck[0] - 7 * u[1], neck[1] + 7 * u[0]); pen.lineTo(neck[0] + 7 * u[1], neck[1] - 7 * u[0]);
    pen.fill();
  }
  floor() {
    const f = this.fit, size = Math.max(f.high[0] - f.low[0], f.high[1] - f.low[1], 0.4);
    const step = size > 1.5 ? 0.5 : size > 0.6 ? 0.2 : 0.1, z = this.ground === undefined ? f.low[2] - 0.02 : this.ground;
    const c = [0, 1].map(k => Math.round((f.low[k] + f.high[k]) / 2 / step) * step), n = Math.ceil(size / step / 1.4);
    for (let k = -n; k <= n; k++) {
      this.line(this.project([c[0] + k * step, c[1] - n * step, z]), this.project([c[0] + k * step, c[1] + n * step, z]), 1, "#e8ebee");
      this.line(this.project([c[0] - n * step, c[1] + k * step, z]), this.project([c[0] + n * step, c[1] + k * step, z]), 1, "#e8ebee");
    }
  }
}
