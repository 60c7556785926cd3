/* Interactive charts of a report: a reader can zoom, read values and hide curves.

   A <figure class="chart"> holds a picture, and a description of the same chart as JSON (made by
   charts.py). This file draws the description with uPlot and hides the picture. uPlot provides
   scales, axes, zoom and cursor; this file draws the marks at the coordinates of the description.
   Without JavaScript, and in print, the picture stays. */
"use strict";

(() => {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const POINT = 4 / 3; // CSS pixels
  const REACH = 28; // largest distance between the pointer and a value shown, in CSS pixels
  const WORDS = 0.36; // largest share of the width for tick labels next to the y axis
  const FONT = "system-ui, sans-serif";

  const isGrey = (colour) => /^#(..)\1\1$/.test(colour);

  /* A colour for the page's background. Dark mode inverts greys, as in dark.css. */
  function shade(colour) {
    if (!dark.matches || !isGrey(colour)) return colour;
    const grey = Math.round(232 - 0.8 * parseInt(colour.slice(1, 3), 16));
    return `rgb(${grey},${grey},${grey})`;
  }

  const ink = () => (dark.matches ? "#d6d8da" : "#2b2b2b");
  const grid = () => (dark.matches ? "#ffffff1f" : "#0000001c");

  function number(value) {
    if (value === null || value === undefined) return "–";
    const size = Math.abs(value);
    if (size !== 0 && (size >= 1e7 || size < 1e-4)) return value.toPrecision(4);
    return value.toLocaleString("en", { maximumSignificantDigits: 5 });
  }

  function element(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  /* ---- ticks ---- */

  function logTicks(low, high) {
    const ticks = [];
    const decades = Math.log10(high / low);
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++)
      for (const step of decades > 3 ? [1] : [1, 2, 5]) ticks.push(step * 10 ** power);
    const seen = ticks.filter((tick) => tick >= low * 0.999 && tick <= high * 1.001);
    return seen.length > 2 ? seen : linearTicks(low, high, 5);
  }

  function linearTicks(low, high, wanted) {
    const rough = (high - low) / wanted;
    const power = 10 ** Math.floor(Math.log10(rough));
    const width = power * ([1, 2, 5].find((step) => step * power >= rough) || 10);
    const ticks = [];
    for (let step = Math.ceil(low / width - 1e-9); step * width <= high + 1e-9 * width; step++)
      ticks.push(Number((step * width).toPrecision(12)));
    return ticks;
  }

  /* Evenly spaced numbers as text, with as many decimals as distinguish them. */
  function evenly(places) {
    const step = places.length > 1 ? places[1] - places[0] : 1;
    const digits = Math.min(20, Math.max(0, Math.ceil(-Math.log10(step) - 1e-9)));
    if (Math.abs(places[places.length - 1]) >= 1e7) return places.map(number);
    return places.map((at) => at.toLocaleString("en", { maximumFractionDigits: digits }));
  }

  /* Text broken into lines of at most this many pixels. */
  function wrapped(text, width) {
    const most = Math.min(999, Math.max(5, Math.floor(width / 6.2)));
    const lines = [""];
    for (const part of text.replace(/\s+/g, " ").split(/(?<=[ _=,/-])/))
      for (const piece of part.match(new RegExp(`.{1,${most}}`, "g"))) {
        const last = lines.length - 1;
        if ((lines[last] + piece.trimEnd()).length <= most) lines[last] += piece;
        else lines.push(piece);
      }
    return lines.join("\n").trim();
  }

  /* ---- a chart ---- */

  class Chart {
    constructor(place, spec, words) {
      this.spec = spec;
      this.hidden = new Set();
      this.log = { x: spec.x.log, y: spec.y.log };
      this.place = place;
      this.plotPlace = element("div", { class: "plot", role: "img", "aria-label": words });
      this.tip = element("div", { class: "tip", "aria-hidden": "true" });
      const unit = element("div", { class: "unit", "aria-hidden": "true" }, spec.y.label);
      place.append(this.tools(), unit, this.plotPlace, this.legend());
      this.build();
      new ResizeObserver(() => this.resize()).observe(place);
      dark.addEventListener("change", () => this.plot.redraw(false));
    }

    /* The title, and buttons above the drawing. */
    tools() {
      const bar = element("div");
      for (const axis of ["y", "x"]) {
        if (!this.canBeLog(axis)) continue;
        const button = element(
          "button",
          { type: "button", "data-axis": axis, "aria-pressed": this.log[axis] },
          `log ${axis}`,
        );
        button.addEventListener("click", () => {
          this.log[axis] = !this.log[axis];
          button.setAttribute("aria-pressed", this.log[axis]);
          this.build();
        });
        bar.append(button);
      }
      this.whole = element("button", { type: "button", hidden: "" }, "reset zoom");
      this.whole.addEventListener("click", () => this.reset());
      bar.prepend(this.whole);
      return element("div", { class: "tools" }, element("b", {}, this.spec.title), bar);
    }

    /* Time and the levels of a factor are logarithmic only if the drawing has them so. */
    canBeLog(axis) {
      const { log, ticks, label } = this.spec[axis];
      return log || (!ticks && !label.startsWith("time") && this.positive(axis) !== null);
    }

    /* The smallest positive coordinate, or null if there is none or if one is negative. */
    positive(axis) {
      let least = Infinity;
      for (const mark of this.spec.marks) {
        if (mark.kind === "text") continue;
        for (const key of [axis, `${axis}0`, `${axis}1`])
          if (Array.isArray(mark[key]))
            for (const value of mark[key]) {
              if (value !== null && value < 0) return null;
              if (value > 0 && value < least) least = value;
            }
      }
      return least === Infinity ? null : least;
    }

    legend() {
      const list = element("div", { class: "legend" });
      for (const entry of this.spec.legend) {
        const button = element(
          "button", { type: "button", "aria-pressed": "true" }, swatch(entry), entry.name,
        );
        button.addEventListener("click", () => {
          const hide = !this.hidden.delete(entry.name);
          if (hide) this.hidden.add(entry.name);
          button.setAttribute("aria-pressed", !hide);
          this.plot.redraw(false);
        });
        list.append(button);
      }
      return list;
    }

    /* The ends of an axis. A logarithmic axis begins above zero. */
    ends(axis) {
      const { from, to } = this.spec[axis];
      if (!this.log[axis] || from > 0) return [from, to];
      return [Math.min(this.positive(axis), to / 10), to];
    }

    size() {
      const width = Math.max(240, this.place.clientWidth);
      const names = (this.spec.y.ticks || []).map(([, text]) => wrapped(text, width * WORDS));
      const rows = 80 + names.length * (8 + 14 * Math.max(1, ...names.map((text) => text.split("\n").length)));
      return { width, height: Math.round(Math.max(rows, Math.min(420, Math.max(240, width * 0.62)))) };
    }

    build() {
      if (this.plot) this.plot.destroy();
      const scale = (axis) => {
        const [min, max] = this.ends(axis);
        const range = (_, low, high) => [low ?? min, high ?? max];
        return { time: false, auto: false, distr: this.log[axis] ? 3 : 1, min, max, range };
      };
      const data = ["x", "y"].map((axis) => this.ends(axis));
      this.plot = new uPlot(
        {
          ...this.size(),
          scales: { x: scale("x"), y: scale("y") },
          axes: [this.axis("x"), this.axis("y")],
          series: [{}, { paths: () => null, points: { show: false } }],
          legend: { show: false },
          cursor: {
            points: { show: false },
            drag: { x: true, y: true, uni: 24, dist: 5 },
            bind: { dblclick: () => () => this.reset() },
          },
          hooks: {
            draw: [(plot) => this.draw(plot)],
            setCursor: [(plot) => this.read(plot)],
            setScale: [() => this.zoomed()],
          },
        },
        data,
        this.plotPlace,
      );
      this.plot.over.append(this.tip);
      this.zoomed();
    }

    axis(axis) {
      const { label, ticks } = this.spec[axis];
      const inside = (low, high) => ticks.map(([at]) => at).filter((at) => at >= low && at <= high);
      const splits = (plot, _, low, high) => {
        if (ticks) return inside(low, high);
        if (this.log[axis]) return logTicks(low, high);
        const pixels = axis === "x" ? plot.width : plot.height;
        return linearTicks(low, high, Math.max(3, pixels / (axis === "x" ? 65 : 45)));
      };
      const words = new Map(ticks || []);
      const room = (plot) =>
        axis === "x" ? (plot.width - 60) / Math.max(1, ticks.length) - 6 : plot.width * WORDS;
      const longest = (texts) =>
        Math.max(1, ...(texts || [""]).flatMap((text) => text.split("\n")).map((line) => line.length));
      const crowded = (plot) => room(plot) < Math.min(44, 6.2 * longest([...words.values()]));
      const turned = (plot) => axis === "x" && ticks && crowded(plot);
      const values = (plot, places) => {
        if (!ticks) return this.log[axis] ? places.map(number) : evenly(places);
        const width = turned(plot) ? Infinity : room(plot);
        return places.map((at) => wrapped(words.get(at), width));
      };
      const lines = (texts) => Math.max(1, ...(texts || []).map((text) => text.split("\n").length));
      const size = (plot, texts) => {
        if (axis === "y") return 16 + 6.6 * longest(texts);
        return turned(plot) ? 24 + 5.6 * longest(texts) : 16 + 16 * lines(texts);
      };
      const named = axis === "x" && label; // the y axis has its label above the plot
      return {
        label: named ? label : null, labelSize: named ? 22 : 0, labelGap: 2, labelFont: `12px ${FONT}`,
        font: `12px ${FONT}`, lineGap: 1.15, stroke: ink, grid: { stroke: grid, width: 1, show: this.spec.grid },
        ticks: { stroke: grid, width: 1, size: 5 }, gap: 4, splits, values, size,
        filter: (_, places) => places, rotate: (plot) => (turned(plot) ? 60 : 0),
      };
    }

    resize() {
      const size = this.size();
      if (size.width !== this.plot.width) this.plot.setSize(size);
    }

    reset() {
      for (const axis of ["x", "y"]) {
        const [min, max] = this.ends(axis);
        this.plot.setScale(axis, { min, max });
      }
    }

    /* Shows the button that resets the zoom, while only a part is visible. */
    zoomed() {
      if (!this.plot) return;
      this.whole.hidden = ["x", "y"].every((axis) => {
        const { min, max } = this.plot.scales[axis];
        const [from, to] = this.ends(axis);
        return min === from && max === to;
      });
    }

    shown(mark) {
      return !mark.name || !this.hidden.has(mark.name);
    }

    /* ---- drawing, in the pixels of the canvas ---- */

    draw(plot) {
      const { ctx, bbox } = plot;
      const paint = {
        ctx, bbox, ratio: devicePixelRatio,
        x: (value) => plot.valToPos(value, "x", true),
        y: (value) => plot.valToPos(this.log.y ? Math.max(value, 1e-300) : value, "y", true),
      };
      for (const mark of this.spec.marks) {
        if (!this.shown(mark)) continue;
        ctx.save();
        if (mark.kind !== "text") {
          ctx.beginPath();
          ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
          ctx.clip();
        }
        ctx.globalAlpha = mark.alpha;
        ctx.strokeStyle = ctx.fillStyle = shade(mark.colour);
        ctx.lineWidth = (mark.width || 0.8) * POINT * paint.ratio;
        ctx.setLineDash((mark.dash || []).map((length) => length * POINT * paint.ratio));
        DRAW[mark.kind](paint, mark);
        ctx.restore();
      }
    }

    /* ---- reading values ---- */

    read(plot) {
      const { left, top } = plot.cursor;
      this.tip.hidden = true;
      if (left === undefined || left < 0) return;
      const at = { left, top, x: (v) => plot.valToPos(v, "x"), y: (v) => plot.valToPos(v, "y"),
        here: plot.posToVal(left, "x") };
      const found = [];
      for (const mark of this.spec.marks)
        if (READ[mark.kind] && this.shown(mark) && (mark.name || mark.values)) {
          const value = READ[mark.kind](at, mark);
          if (value) found.push({ mark, ...value });
        }
      if (found.length) this.tell(plot, found);
    }

    tell(plot, found) {
      const { x, y } = this.spec;
      const named = ({ ticks }, value) => {
        const gap = ([at]) => Math.abs(at - value);
        const [, words] = (ticks || []).reduce((a, b) => (gap(b) < gap(a) ? b : a), [Infinity, "0"]);
        return Number.isNaN(Number(words)) ? words : number(value);
      };
      this.tip.replaceChildren(
        element("b", {}, x.label ? `${x.label}: ${named(x, found[0].x)}` : named(x, found[0].x)),
      );
      for (const { mark, y: value, low, high } of found) {
        const has = low !== undefined && low !== null;
        const ends = value === undefined ? `${number(low)} to ${number(high)}`
          : `${number(value)}${has ? ` [${number(low)}, ${number(high)}]` : ""}`;
        const words = mark.values ? `${named(y, found[0].at)}: ` : `${mark.name}: `;
        const key = element("i", { style: `background:${shade(mark.colour)}` });
        this.tip.append(element("div", {}, key, `${words}${ends}`));
      }
      this.tip.hidden = false;
      const { left, top } = plot.cursor;
      const room = { x: plot.over.clientWidth, y: plot.over.clientHeight };
      const { offsetWidth: width, offsetHeight: height } = this.tip;
      const beside = left + 14 + width <= room.x ? left + 14 : Math.max(0, left - 14 - width);
      this.tip.style.left = `${Math.min(beside, Math.max(0, room.x - width))}px`;
      this.tip.style.top = `${Math.max(0, Math.min(top + 10, room.y - height))}px`;
    }
  }

  /* ---- how each kind of mark is drawn ---- */

  function trace({ ctx, x, y }, mark) {
    let pen = false;
    let before = 0;
    ctx.beginPath();
    mark.x.forEach((value, index) => {
      if (value === null || mark.y[index] === null) {
        pen = false;
        return;
      }
      const [left, top] = [x(value), y(mark.y[index])];
      if (!pen) ctx.moveTo(left, top);
      else if (mark.step === "steps-post") ctx.lineTo(left, before);
      if (pen) ctx.lineTo(left, top);
      [pen, before] = [true, top];
    });
  }

  function interval({ ctx, x, y, ratio }, at, low, high) {
    const cap = 3 * ratio;
    ctx.beginPath();
    for (const end of [low, high]) {
      ctx.moveTo(x(at) - cap, y(end));
      ctx.lineTo(x(at) + cap, y(end));
    }
    ctx.moveTo(x(at), y(low));
    ctx.lineTo(x(at), y(high));
    ctx.setLineDash([]);
    ctx.lineWidth = ratio;
    ctx.stroke();
  }

  /* The shapes of matplotlib's markers, in a square from -1 to 1 with y upwards. */
  const MARKERS = {
    s: [[-1, -1], [1, -1], [1, 1], [-1, 1]], D: [[0, -1.3], [1.3, 0], [0, 1.3], [-1.3, 0]],
    "^": [[-1, -1], [1, -1], [0, 1]], v: [[-1, 1], [1, 1], [0, -1]],
    "<": [[1, -1], [1, 1], [-1, 0]], ">": [[-1, -1], [-1, 1], [1, 0]],
  };

  const CROSSES = { x: [[1, 1], [1, -1]], "+": [[1, 0], [0, 1]] };

  function marker(ctx, { marker: shape, hollow }, left, top, radius) {
    ctx.beginPath();
    if (CROSSES[shape]) {
      for (const [right, up] of CROSSES[shape]) {
        ctx.moveTo(left - right * radius, top - up * radius);
        ctx.lineTo(left + right * radius, top + up * radius);
      }
      ctx.stroke();
      return;
    }
    const corners = MARKERS[shape];
    if (!corners) ctx.arc(left, top, radius, 0, 2 * Math.PI);
    else for (const [right, up] of corners) ctx.lineTo(left + right * radius, top - up * radius);
    ctx.closePath();
    if (hollow) ctx.stroke();
    else ctx.fill();
  }

  const DRAW = {
    line(paint, mark) {
      const { ctx, x, y, ratio } = paint;
      if (mark.width) {
        trace(paint, mark);
        ctx.stroke();
      }
      ctx.setLineDash([]);
      ctx.lineWidth = 1.2 * ratio;
      mark.x.forEach((value, index) => {
        if (value === null || mark.y[index] === null) return;
        if (mark.marker)
          marker(ctx, mark, x(value), y(mark.y[index]), (mark.size / 2) * POINT * ratio);
        if (mark.low) interval(paint, value, mark.low[index], mark.high[index]);
      });
    },
    area(paint, mark) {
      trace(paint, mark);
      paint.ctx.fill();
    },
    bars(paint, mark) {
      const { ctx, x, y } = paint;
      mark.x0.forEach((left, index) => {
        if (mark.values && mark.values[index] === null) return;
        if (mark.colours) ctx.fillStyle = mark.colours[index];
        const [a, b] = [x(left), x(mark.x1[index])];
        const [c, d] = [y(mark.y0[index]), y(mark.y1[index])];
        ctx.fillRect(Math.min(a, b), Math.min(c, d), Math.abs(b - a), Math.abs(d - c));
      });
      if (!mark.low) return;
      ctx.globalAlpha = 1;
      ctx.strokeStyle = ink();
      mark.x0.forEach((left, index) =>
        interval(paint, (left + mark.x1[index]) / 2, mark.low[index], mark.high[index]));
    },
    pieces({ ctx, x, y }, mark) {
      ctx.beginPath();
      mark.x.forEach((at, index) => {
        ctx.moveTo(x(at), y(mark.y0[index]));
        ctx.lineTo(x(at), y(mark.y1[index]));
      });
      ctx.stroke();
    },
    rule({ ctx, bbox, x, y }, mark) {
      ctx.beginPath();
      const at = mark.axis === "x" ? x(mark.at) : y(mark.at);
      if (mark.axis === "x") {
        ctx.moveTo(at, bbox.top);
        ctx.lineTo(at, bbox.top + bbox.height);
      } else {
        ctx.moveTo(bbox.left, at);
        ctx.lineTo(bbox.left + bbox.width, at);
      }
      ctx.stroke();
    },
    span({ ctx, bbox, x, y }, mark) {
      const [a, b] = [mark.from, mark.to].map(mark.axis === "x" ? x : y);
      const [low, size] = [Math.min(a, b), Math.abs(b - a)];
      if (mark.axis === "x") ctx.fillRect(low, bbox.top, size, bbox.height);
      else ctx.fillRect(bbox.left, low, bbox.width, size);
    },
    text({ ctx, bbox, x, y, ratio }, mark) {
      const left = mark.data[0] ? x(mark.x) : bbox.left + mark.x * bbox.width;
      const top = mark.data[1] ? y(mark.y) : bbox.top + (1 - mark.y) * bbox.height;
      const out = 2 * ratio; // text outside the zoomed range is not drawn next to the axes
      if (left < bbox.left - out || left > bbox.left + bbox.width + out) return;
      if (top < bbox.top - out || top > bbox.top + bbox.height + out) return;
      const size = Math.max(mark.size * POINT, 10) * ratio;
      ctx.font = `${size}px ${FONT}`;
      // matplotlib aligns the box around rotated text. A canvas aligns the text before rotation.
      const turned = mark.rotate === 90;
      const [along, beside] = turned ? [mark.baseline, mark.align] : [mark.align, mark.baseline];
      ctx.textAlign = { bottom: "left", baseline: "left", top: "right" }[along] || along;
      ctx.textBaseline = { center: "middle", left: "top", right: "bottom", baseline: "alphabetic" }[beside] || beside;
      ctx.translate(left + mark.shift[0] * POINT * ratio, top - mark.shift[1] * POINT * ratio);
      ctx.rotate((-mark.rotate * Math.PI) / 180);
      ctx.strokeStyle = shade("#ffffff");
      ctx.lineWidth = 3 * ratio;
      ctx.lineJoin = "round";
      ctx.setLineDash([]);
      mark.text.split("\n").forEach((line, index) => {
        if (isGrey(mark.colour)) ctx.strokeText(line, 0, index * size * 1.15);
        ctx.fillText(line, 0, index * size * 1.15);
      });
    },
  };

  /* ---- values near the pointer: x, y, and the interval if there is one ---- */

  const between = (value, a, b) => value >= Math.min(a, b) && value <= Math.max(a, b);

  const READ = {
    line(at, mark) {
      const scattered = !mark.width;
      const reach = scattered ? 12 : REACH;
      let best = null;
      let least = Infinity;
      mark.x.forEach((value, index) => {
        if (value === null || mark.y[index] === null) return;
        const away = Math.abs(at.x(value) - at.left);
        if (away > reach) return;
        const up = Math.abs(at.y(mark.y[index]) - at.top);
        const distance = scattered ? Math.hypot(away, up) : away + up / 1e4;
        if (distance < least && (!scattered || distance <= reach)) [best, least] = [index, distance];
      });
      if (best === null) return null;
      const ends = mark.low ? { low: mark.low[best], high: mark.high[best] } : {};
      return { x: mark.x[best], y: mark.y[best], ...ends };
    },
    area(at, mark) {
      const crossed = [];
      mark.x.forEach((x1, index) => {
        const x0 = mark.x[index - 1];
        if (index === 0 || x0 === x1 || !between(at.here, x0, x1)) return;
        const share = (at.here - x0) / (x1 - x0);
        crossed.push(mark.y[index - 1] + share * (mark.y[index] - mark.y[index - 1]));
      });
      if (crossed.length < 2) return null;
      const [low, high] = [Math.min(...crossed), Math.max(...crossed)];
      return mark.box ? { x: at.here, low, high } : { x: at.here, y: high - low };
    },
    bars(at, mark) {
      for (let index = 0; index < mark.x0.length; index++) {
        if (!between(at.left, at.x(mark.x0[index]), at.x(mark.x1[index]))) continue;
        const [low, high] = [mark.y0[index], mark.y1[index]];
        const middle = (mark.x0[index] + mark.x1[index]) / 2;
        if (mark.values) {
          if (!between(at.top, at.y(low), at.y(high))) continue;
          return { x: middle, at: (low + high) / 2, y: mark.values[index] };
        }
        const ends = mark.low ? { low: mark.low[index], high: mark.high[index] } : {};
        return { x: middle, y: high - low, ...ends };
      }
      return null;
    },
    pieces(at, mark) {
      for (let index = 0; index < mark.x.length; index++) {
        if (Math.abs(at.x(mark.x[index]) - at.left) > 4) continue;
        const ends = [at.y(mark.y0[index]), at.y(mark.y1[index])];
        if (between(at.top, Math.min(...ends) - 4, Math.max(...ends) + 4))
          return { x: mark.x[index], low: mark.y0[index], high: mark.y1[index] };
      }
      return null;
    },
  };

  /* ---- the line sample of a legend entry ---- */

  function swatch(entry) {
    const space = "http://www.w3.org/2000/svg";
    const made = document.createElementNS(space, "svg");
    const add = (name, attributes) => {
      const part = document.createElementNS(space, name);
      for (const [key, value] of Object.entries(attributes)) part.setAttribute(key, value);
      made.append(part);
    };
    for (const [key, value] of Object.entries({ width: 28, height: 12, "aria-hidden": true }))
      made.setAttribute(key, value);
    const colour = isGrey(entry.colour) ? "currentColor" : entry.colour;
    if (entry.width)
      add("line", {
        x1: 1, x2: 27, y1: 6, y2: 6, stroke: colour, "stroke-opacity": entry.alpha ?? 1,
        "stroke-width": Math.min(10, entry.width * POINT),
        "stroke-dasharray": (entry.dash || []).map((length) => length * POINT).join(" "),
      });
    const { marker: shape } = entry;
    const at = ([right, up]) => `${14 + 3.6 * right} ${6 - 3.6 * up}`;
    const paint = entry.hollow ? { fill: "none", stroke: colour } : { fill: colour };
    if (CROSSES[shape])
      for (const end of CROSSES[shape])
        add("path", { d: `M${at(end)}L${at(end.map((each) => -each))}`, stroke: colour });
    else if (MARKERS[shape]) add("path", { d: `M${MARKERS[shape].map(at).join("L")}Z`, ...paint });
    else if (shape) add("circle", { cx: 14, cy: 6, r: 3.4, ...paint });
    return made;
  }

  for (const figure of document.querySelectorAll("figure.chart")) {
    const picture = figure.querySelector("img");
    const charts = JSON.parse(figure.querySelector("script").textContent);
    const drawn = element("div", { class: "charts" });
    picture.after(drawn);
    for (const spec of charts) {
      const place = element("div", { class: "one" });
      drawn.append(place);
      const words = charts.length > 1 ? `${spec.title}: ${picture.alt}` : picture.alt;
      place.chart = new Chart(place, spec, words);
    }
    figure.classList.add("live");
    if (charts.length === 1) figure.classList.add("single"); // the page shows the title above it
  }
})();
