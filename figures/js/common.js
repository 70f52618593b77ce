// Shared by every explorer: controls, SVG pieces, colours, and the rules of shared and global memory.
// STYLE (colours) and DATA (this explorer's own data) are put in front of this text by figures/widgets.py.

const textOn = (color) => {
  const part = (i) => {
    const c = parseInt(color.slice(1 + 2 * i, 3 + 2 * i), 16) / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  };
  const light = 0.2126 * part(0) + 0.7152 * part(1) + 0.0722 * part(2);
  return (light + 0.05) / 0.0555 > 1.05 / (light + 0.05) ? "#111111" : "#ffffff";
};
const escape = (words) =>
  String(words).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
const count = (n) => Math.round(n).toLocaleString("en-US");
const plural = (n, word) => `${count(n)} ${word}${n === 1 ? "" : "s"}`;
// As Python rounds, half to even: a figure that moves and one that does not say the same.
const percent = (x) => {
  const whole = Math.floor(100 * x);
  return `${100 * x - whole === 0.5 ? whole + (whole % 2) : Math.round(100 * x)}%`;
};
const range = (n) => Array.from({ length: n }, (_, i) => i);

const svg = {
  rect: (x, y, w, h, fill, more = "") =>
    `<rect x="${x.toFixed(1)}" y="${y.toFixed(1)}" width="${Math.max(w, 0).toFixed(1)}" height="${h.toFixed(1)}" fill="${fill}" ${more}/>`,
  text: (x, y, words, { size = 11, fill = "var(--gl-ink)", anchor = "middle", bold = false } = {}) =>
    `<text x="${x.toFixed(1)}" y="${(y + 0.36 * size).toFixed(1)}" font-size="${size}" fill="${fill}" text-anchor="${anchor}"` +
    `${bold ? ' font-weight="700"' : ""}>${escape(words)}</text>`,
  line: (x0, y0, x1, y1, color = "var(--gl-muted)", width = 1, more = "") =>
    `<line x1="${x0.toFixed(1)}" y1="${y0.toFixed(1)}" x2="${x1.toFixed(1)}" y2="${y1.toFixed(1)}" stroke="${color}" stroke-width="${width}" ${more}/>`,
  // On a phone a picture keeps its full width, so that its smallest words stay legible, and scrolls. Where there is nothing to
  // draw, the label stands in the picture's place: it says why.
  page: (width, height, body, label, min = 560) =>
    `<svg viewBox="0 0 ${width} ${height}" role="img" aria-label="${escape(label)}" style="min-width:${body ? min : 0}px;--wide:${body ? width : 0}px">` +
    `${body || svg.words(width, height, label)}</svg>`,
  words: (width, height, label) => {
    const lines = [];
    for (const word of label.split(" ")) {
      const last = lines.length - 1;
      if (last >= 0 && lines[last].length + word.length < 46) lines[last] += ` ${word}`;
      else lines.push(word);
    }
    const from = height / 2 - (lines.length - 1) * 16;
    return (
      svg.rect(0, 0, width, height, "var(--gl-soft)") +
      lines.map((line, i) => svg.text(width / 2, from + 32 * i, line, { size: 24 })).join("")
    );
  },
};

// Largest number of distinct units in one of `banks` banks.
const worst = (units, banks) => {
  const seen = new Map();
  for (const unit of units) {
    if (!seen.has(unit % banks)) seen.set(unit % banks, new Set());
    seen.get(unit % banks).add(unit);
  }
  return Math.max(0, ...[...seen.values()].map((set) => set.size));
};

// Which wavefront serves each lane: the rules of emulator/counts/wavefronts.py.
// addresses: 32 byte addresses, -1 where a lane is inactive; width: 1 to 16 bytes; load: whether lanes may share sets.
const wavefronts = (addresses, width, load = true) => {
  const size = { 1: 32, 2: 32, 4: 32, 8: 16, 16: 8 }[width];
  const unitBytes = Math.max(width, 4);
  const banks = 128 / unitBytes;
  const unit = (lane) => Math.floor(addresses[lane] / unitBytes);
  const lanes = range(32).filter((lane) => addresses[lane] >= 0);
  let sets = range(32 / size).map((part) => lanes.filter((lane) => Math.floor(lane / size) === part));
  const paired = [1, 2].some((step) => lanes.every((lane) => addresses[lane] === addresses[lane ^ step]));
  if (load && size < 32 && paired) {
    const merged = [];
    for (let i = 0; i < sets.length; i += 2) {
      const both = [...sets[i], ...sets[i + 1]];
      if (worst(both.map(unit), banks) === 1) merged.push(both);
      else merged.push(sets[i], sets[i + 1]);
    }
    sets = merged;
  }
  const served = Array(32).fill(-1);
  let first = 0;
  for (const set of sets) {
    const slots = new Map();
    for (const lane of set) {
      const bank = unit(lane) % banks;
      if (!slots.has(bank)) slots.set(bank, []);
      const words = slots.get(bank);
      if (!words.includes(unit(lane))) words.push(unit(lane));
      served[lane] = first + words.indexOf(unit(lane));
    }
    first += worst(set.map(unit), banks);
  }
  const ideal = range(32 / size).filter((part) => lanes.some((lane) => Math.floor(lane / size) === part)).length;
  return { served, total: first, ideal };
};

// A page element for each control; values come back as {id: number or string}.
const controlsOf = (root, specs, start, changed) => {
  const values = {};
  const shown = {};
  const inputs = {};
  for (const spec of specs) {
    const label = document.createElement("label");
    const head = document.createElement("span");
    head.className = "name";
    label.append(head);
    let input;
    if (spec.options) {
      input = document.createElement("select");
      for (const option of spec.options) {
        const [value, words] = Array.isArray(option) ? option : [option, option];
        input.append(new Option(words, value));
      }
    } else if (spec.text) {
      input = document.createElement("input");
      Object.assign(input, { type: "text", spellcheck: false, autocomplete: "off" });
    } else {
      input = document.createElement("input");
      input.type = "range";
      Object.assign(input, { min: spec.min, max: spec.max, step: spec.step ?? 1 });
    }
    input.value = start[spec.id] ?? spec.value;
    const read = () => {
      values[spec.id] = spec.words ? input.value : Number(input.value);
      head.textContent =
        spec.label + (spec.options || spec.text ? "" : ` ${spec.show ? spec.show(values[spec.id]) : input.value}`);
    };
    input.addEventListener("input", () => {
      read();
      changed();
    });
    label.append(input);
    root.append(label);
    read();
    shown[spec.id] = label;
    inputs[spec.id] = { input, read, spec };
    if (!input.value) {
      input.value = spec.value ?? spec.options?.[0]; // a setting that no option has, from an address
      read();
    }
  }
  const set = (id, value) => {
    inputs[id].input.value = value;
    inputs[id].read();
    changed();
  };
  const hide = (id, hidden) => {
    shown[id].style.display = hidden ? "none" : "";
  };
  // Several at once, with one redrawing.
  const setAll = (wanted) => {
    for (const [id, value] of Object.entries(wanted)) {
      if (!inputs[id]) continue;
      inputs[id].input.value = value;
      inputs[id].read();
    }
    changed();
  };
  return { values, inputs, set, setAll, hide };
};

// The address of a page of the book (not of a notebook) holds what its explorers show: `?banks.row=33`, or `banks2.row`
// for the second of a kind. It can be sent, and opens the same view.
const inBook = () => document.documentElement.dataset.content_root !== undefined;
const addressed = (name) => {
  const found = {};
  if (inBook())
    for (const [key, value] of new URLSearchParams(location.search))
      if (key.startsWith(`${name}.`)) found[key.slice(name.length + 1)] = value;
  return found;
};
const address = (name, values, start) => {
  const query = new URLSearchParams(location.search);
  for (const [id, value] of Object.entries(values))
    if (String(value) === String(start[id])) query.delete(`${name}.${id}`);
    else query.set(`${name}.${id}`, value);
  const words = query.toString();
  return location.pathname + (words ? `?${words}` : "") + location.hash;
};

// What belongs to the lane or the bank that is pointed at stays lit, in every explorer of the page: elements name theirs in
// data-lane and data-bank, several with spaces between them.
const POINTED = ["lane", "bank"];
const litBy = (pointed) =>
  POINTED.filter((kind) => pointed?.[kind])
    .map((kind) => {
      const others = pointed[kind].split(" ").map((one) => `:not([data-${kind}~="${one}"])`);
      return `.picture [data-${kind}]${others.join("")}{opacity:.2}`;
    })
    .join("");
const linkHover = (root) => {
  const sheet = document.createElement("style");
  root.append(sheet);
  const say = (pointed) => document.dispatchEvent(new CustomEvent("gl-point", { detail: pointed }));
  const picture = root.querySelector(".picture");
  picture.addEventListener("pointerover", (event) => {
    const at = event.target.closest?.("[data-lane],[data-bank]");
    if (at) say({ lane: at.dataset.lane, bank: at.dataset.lane ? undefined : at.dataset.bank });
    else say(null);
  });
  picture.addEventListener("pointerleave", () => say(null));
  document.addEventListener("gl-point", (event) => (sheet.textContent = litBy(event.detail)));
};

// Reset, and for an explorer that names what to play, step and play: the slider goes on by one, and begins anew at its end.
const toolsOf = (root, controls, explorer, data, start) => {
  const button = (words, act) => {
    const made = document.createElement("button");
    Object.assign(made, { type: "button", textContent: words, onclick: act });
    root.append(made);
    return made;
  };
  let timer = 0;
  const stop = () => {
    clearInterval(timer);
    timer = 0;
    if (playing) playing.textContent = "Play";
  };
  const step = () => {
    const { input } = controls.inputs[explorer.play];
    const last = explorer.last ? explorer.last(controls.values, data) : Number(input.max);
    const first = explorer.first ?? Number(input.min);
    const next = Number(input.value) + Number(input.step || 1);
    controls.set(explorer.play, next > last || next < first ? first : next);
  };
  let playing = null;
  if (explorer.play) {
    button("Step", () => {
      stop();
      step();
    });
    playing = button("Play", () => {
      if (timer) return stop();
      step();
      timer = setInterval(step, 900);
      playing.textContent = "Pause";
    });
  }
  button("Reset", () => {
    stop();
    controls.setAll(start);
  });
};

const CSS = `
:host{display:block;color:var(--gl-ink);font:14px/1.45 system-ui,-apple-system,"Segoe UI",Roboto,Arial,sans-serif}
.controls{display:flex;flex-wrap:wrap;gap:.5em 1.4em;margin:.2em 0 .6em}
label{display:flex;flex-direction:column;gap:.15em;flex:1 1 150px;max-width:260px;font-size:13px;color:var(--gl-muted)}
.name{white-space:nowrap}
input[type=range]{width:100%;accent-color:#0072b2;margin:.2em 0;height:1.4em}
select{font:inherit;color:var(--gl-ink);background:var(--gl-soft);border:1px solid var(--gl-line);border-radius:6px;padding:.25em .4em;max-width:100%}
.finding{font-weight:650;font-size:15px;margin:.2em 0;min-height:1.45em}
.note{color:var(--gl-muted);font-size:13px;margin:.35em 0 0;min-height:1.4em}
.picture{overflow-x:auto;background:linear-gradient(to right,var(--gl-card) 40%,transparent) left/28px 100% no-repeat local,linear-gradient(to left,var(--gl-card) 40%,transparent) right/28px 100% no-repeat local,linear-gradient(to right,#8888,transparent) left/9px 100% no-repeat scroll,linear-gradient(to left,#8888,transparent) right/9px 100% no-repeat scroll}
svg{display:block;width:100%;height:auto;font-family:"DejaVu Sans",Verdana,system-ui,sans-serif}
.bad{color:#b34d00;color:light-dark(#b34d00,#e8772e)}.good{color:#007a59;color:light-dark(#007a59,#1fc796)}
.tools{display:flex;gap:.5em;margin:.4em 0 0}
.tools button{font:inherit;font-size:13px;min-height:28px;padding:.15em .9em;color:var(--gl-ink);background:var(--gl-soft);border:1px solid var(--gl-line);border-radius:6px;cursor:pointer}
input[type=text]{font:14px "DejaVu Sans Mono",Menlo,Consolas,monospace;color:var(--gl-ink);background:var(--gl-soft);border:1px solid var(--gl-line);border-radius:6px;padding:.3em .45em;width:100%;box-sizing:border-box}
@media (max-width:520px){svg{min-width:var(--wide,0)!important}.name{white-space:normal}}
@media print{.tools,.controls button,.controls input[type=range]{display:none}.controls select,.controls input{border:0;padding:0;background:none;appearance:none}}
button:focus-visible,input:focus-visible,select:focus-visible,[tabindex]:focus-visible{outline:2px solid #0072b2;outline-offset:2px}
`;

// Whether a control can be set to what an address asks for.
const takes = (input, value) => {
  if (!input) return false;
  if (input.tagName === "SELECT") return [...input.options].some((option) => option.value === value);
  if (input.type !== "range") return true;
  return value.trim() !== "" && Number(value) >= Number(input.min) && Number(value) <= Number(input.max);
};

// Put an explorer into every element that waits for one of its kind and has not got it yet.
const mount = (kind, explorer) => {
  for (const host of document.querySelectorAll(`.gl-explorer[data-kind="${kind}"]:not([data-ready])`)) {
    host.setAttribute("data-ready", "");
    const root = host.attachShadow({ mode: "open" });
    root.innerHTML =
      `<style>${CSS}${explorer.css ?? ""}</style><div class="controls"></div>` +
      '<p class="finding" aria-live="polite"></p><div class="picture"></div><p class="note"></p><div class="tools"></div>';
    const data = JSON.parse(host.dataset.data);
    const number = [...document.querySelectorAll(`.gl-explorer[data-kind="${kind}"]`)].indexOf(host) + 1;
    const name = number > 1 ? kind + number : kind;
    const asked = addressed(name);
    const part = (words) => root.querySelector(`.${words}`);
    let controls, first, waiting;
    const remember = () => history.replaceState(history.state, "", address(name, controls.values, first));
    const update = () => {
      if (!controls) return;
      if (explorer.adapt) explorer.adapt(controls, data);
      const drawn = explorer.draw(controls.values, data);
      part("finding").innerHTML = drawn.finding;
      part("picture").innerHTML = drawn.picture;
      part("note").innerHTML = drawn.note ?? "";
      if (explorer.wire) explorer.wire(root, controls, data);
      clearTimeout(waiting);
      if (first && inBook()) waiting = setTimeout(remember, 300);
    };
    controls = controlsOf(part("controls"), explorer.controls(data), data.start, update);
    update();
    first = { ...controls.values };
    if (Object.keys(asked).length) {
      // In the order of the controls: one may fill in another, as a list of examples does.
      const strange = Object.keys(asked).filter((id) => !takes(controls.inputs[id]?.input, asked[id]));
      for (const id of Object.keys(first))
        if (id in asked && !strange.includes(id)) controls.setAll({ [id]: asked[id] });
      if (strange.length) {
        const told = document.createElement("p");
        told.className = "note bad";
        told.textContent = `The address asks for ${strange.map((id) => `${id} = ${asked[id]}`).join(", ")}, which this figure does not have.`;
        part("controls").before(told);
      }
      if (!location.hash) host.scrollIntoView({ block: "center" });
    }
    toolsOf(part("tools"), controls, explorer, data, first);
    linkHover(root);
  }
};
