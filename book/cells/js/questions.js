// Questions in a page: the reader answers, and only then sees what is right. Nothing here needs a kernel.
// What was answered is kept in localStorage, on this device; where a browser refuses that, it is kept while the page is open.

const questions = (() => {
  const KEY = "gemm-ladder:answer:";
  const kept = new Map();
  const memory = {
    read: (name) => {
      try {
        return localStorage.getItem(KEY + name) ?? kept.get(name) ?? null;
      } catch {
        return kept.get(name) ?? null;
      }
    },
    write: (name, said) => {
      if (said === null) kept.delete(name);
      else kept.set(name, said);
      try {
        if (said === null) localStorage.removeItem(KEY + name);
        else localStorage.setItem(KEY + name, said);
      } catch {
        // private windows and sandboxed outputs: the map above has it
      }
    },
  };

  const unseal = (sealed) =>
    JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(sealed), (c) => c.charCodeAt(0))));
  const one = (words) => (/^[-+−]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(words) ? Number(words.replace("−", "-")) : NaN);
  // "1,024", "12.5%", "1/4", "2^10", "64k": as people write numbers; NaN when it is none.
  const number = (words) => {
    const bare = words
      .trim()
      .replace(/[,\s_]/g, "")
      .replace(/[x×]$/i, "");
    for (const [mark, join] of [
      ["/", (a, b) => a / b],
      ["^", (a, b) => a ** b],
      ["*", (a, b) => a * b],
    ]) {
      const parts = bare.split(mark === "^" ? /\^|\*\*/ : mark);
      if (parts.length === 2) return join(one(parts[0]), one(parts[1]));
    }
    const scale = { "%": 0.01, k: 1e3, m: 1e6 }[bare.slice(-1).toLowerCase()];
    return scale ? one(bare.slice(0, -1)) * scale : one(bare);
  };
  // "12 sectors", where the unit is "sectors per request", is 12.
  const unitless = (said, unit) => {
    const [, bare, word] = said.match(/^\s*(\S*\d\S*)\s+([a-z]+)\b/i) ?? [];
    const stem = (words) => words.split(" ")[0].toLowerCase().replace(/s$/, "");
    return word && stem(word) === stem(unit) ? bare : said;
  };
  const shown = (value) => {
    if (typeof value !== "number") return String(value);
    if (Number.isInteger(value)) return value.toLocaleString("en-US");
    return Math.abs(value) < 1000 ? String(Number(value.toPrecision(3))) : Math.round(value).toLocaleString("en-US");
  };
  const unit = (words, value) => (value === 1 ? words.replace(/^(\S*?)s(?= |$)/, "$1") : words);
  const off = (said, right) => {
    if (!(said > 0 && right > 0)) return "not so";
    return `${shown(Math.round(10 * Math.max(said / right, right / said)) / 10)}x too ${said > right ? "many" : "few"}`;
  };
  const same = (key, value) => key === value || (typeof value === "number" && number(key) === value);

  // What to say of an answer: {value, right, words}; words is "" where there is nothing to say. value is null for nonsense.
  const judge = (said, known) => {
    const value = known.choices.length ? said : number(unitless(said, known.unit ?? ""));
    if (!known.choices.length && !Number.isFinite(value)) return { value: null, right: false, words: "Type a number." };
    const right = known.choices.length
      ? value === known.answer
      : Math.abs(value - known.answer) <= known.within * Math.abs(known.answer);
    const typical = Object.entries(known.wrong).find(([key]) => same(key, value));
    return { value, right, words: right ? "" : typical ? typical[1] : "" };
  };
  const far = (value, known) => (known.choices.length || known.places ? "not so" : off(value, known.answer));

  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "html") element.innerHTML = value;
      else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else element.setAttribute(name, value);
    }
    element.append(...children);
    return element;
  };

  // What was counted stays out of sight until the reader has answered, or asks for it.
  const seal = (counted, name, open) => {
    const folded = counted.querySelector("details"); // without a script, the answer is folded
    if (folded) {
      folded.querySelector("summary").remove();
      counted.dataset.counted = folded.innerHTML;
    }
    if (open || shownAnyway.has(name)) counted.innerHTML = counted.dataset.counted;
    else {
      const show = () => {
        shownAnyway.add(name);
        counted.innerHTML = counted.dataset.counted;
        unfold(name);
      };
      counted.replaceChildren(make("button", { type: "button", class: "gl-q-quiet", onclick: show }, "Show me"));
    }
  };
  const shownAnyway = new Set();

  // What tells answers is folded in a page of the book (book/_sphinx/after_answers.py), until all of them are given or shown.
  const folds = (name) =>
    [...document.querySelectorAll("details.gl-after")].filter((fold) => fold.dataset.after.split(" ").includes(name));
  const unfold = (name) => {
    const known = (asked) => memory.read(asked) !== null || shownAnyway.has(asked);
    for (const fold of folds(name)) if (fold.dataset.after.split(" ").every(known)) fold.open = true;
  };

  // Below a chapter's title, how many of its questions were answered on this device.
  const count = () => {
    const line = document.querySelector(".reading-time");
    if (!line) return;
    const asked = [...document.querySelectorAll(".gl-q")].map((host) => host.dataset.name);
    const given = asked.filter((name) => memory.read(name) !== null).length;
    let told = line.querySelector(".gl-given");
    if (!told) line.append((told = make("span", { class: "gl-given" })));
    told.textContent = given ? ` You have answered ${given} of its ${asked.length} (kept in this browser).` : "";
  };

  // Cells of tables that show what the reader said, and whether it was right.
  const tell = (name) => {
    unfold(name);
    count();
    for (const cell of document.querySelectorAll("[data-said]")) {
      if (cell.dataset.said !== name) continue;
      const said = memory.read(name);
      const verdict = cell.parentElement.querySelector("[data-verdict]");
      const known = unseal(cell.dataset.sealed);
      const found = said === null ? null : judge(said, known);
      cell.textContent = found === null ? "-" : shown(found.value ?? said);
      const counted = cell.parentElement.querySelector("[data-counted]");
      if (counted) seal(counted, name, found !== null);
      if (verdict)
        verdict.textContent = found === null ? "no prediction yet" : found.right ? "right" : far(found.value, known);
    }
  };

  const build = (host) => {
    const known = unseal(host.dataset.sealed);
    const name = host.dataset.name;
    const reveals = host.dataset.mode === "predict";
    const answer = make("div", { class: "gl-q-answer", role: "status", "aria-live": "polite" });
    const again = make("button", { type: "button", class: "gl-q-quiet", onclick: () => start() }, "Ask me again");
    const giveUp = make(
      "button",
      { type: "button", class: "gl-q-quiet", onclick: () => finish(null) },
      "Show the answer",
    );
    const form = make("form", { novalidate: "" });
    const asked = host.querySelector(".gl-q-ask");
    const naming = asked ? { "aria-labelledby": asked.id } : { "aria-label": "your answer" };
    let field = null;

    const finish = (said) => {
      const found = said === null ? null : judge(said, known);
      const first =
        found === null
          ? ""
          : `You said ${shown(found.value)}${known.unit && !known.choices.length ? " " + unit(known.unit, found.value) : ""}. `;
      const verdict =
        found === null
          ? ""
          : found.right
            ? "<strong>Right.</strong> "
            : known.choices.length
              ? ""
              : `<strong>${far(found.value, known)}.</strong> `;
      answer.replaceChildren(
        make("p", {
          html:
            `${first.replace(/[<&]/g, (c) => ({ "<": "&lt;", "&": "&amp;" })[c])}${verdict}` +
            `It is <strong class="gl-q-right"></strong>.`,
        }),
      );
      answer.querySelector(".gl-q-right").textContent = known.text;
      if (found && found.words) answer.append(make("p", { html: found.words }));
      if (known.why) answer.append(make("p", { html: known.why }));
      answer.append(again);
      form.hidden = true;
      host.dataset.state = found === null ? "shown" : found.right ? "right" : "wrong";
    };
    const answered = (said) => {
      const found = judge(said, known);
      if (found.value === null) {
        answer.replaceChildren(make("p", {}, found.words));
        return;
      }
      memory.write(name, said);
      tell(name);
      if (reveals || found.right) {
        finish(said);
        return;
      }
      const size =
        known.choices.length || known.places
          ? ""
          : found.value > known.answer
            ? " It is too large."
            : " It is too small.";
      answer.replaceChildren(
        make("p", { html: `<strong>Not ${known.choices.length ? "this one" : "yet"}.</strong>${size} ${found.words}` }),
        giveUp,
      );
      host.dataset.state = "trying";
    };
    const start = () => {
      memory.write(name, null);
      tell(name);
      for (const fold of folds(name)) fold.open = false;
      answer.replaceChildren();
      form.hidden = false;
      if (field) {
        field.value = "";
        field.focus();
      }
      host.dataset.state = "open";
    };

    if (known.choices.length) {
      const group = make("div", { role: "group", style: "display: contents", ...naming });
      for (const choice of known.choices)
        group.append(make("button", { type: "button", onclick: () => answered(choice) }, choice));
      form.append(group);
    } else {
      field = make("input", { type: "text", inputmode: "decimal", autocomplete: "off", size: "9", ...naming });
      form.append(
        field,
        make("span", { class: "gl-q-unit" }, known.unit),
        make("button", { type: "submit" }, reveals ? "Commit, and see" : "Check"),
      );
      // JupyterLab takes keys as commands unless they stay here.
      form.addEventListener("keydown", (event) => event.stopPropagation());
    }
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      answered(field.value);
    });
    host.append(form, answer);
    const said = memory.read(name);
    if (said !== null) answered(said);
    else host.dataset.state = "open";
  };

  // JupyterLab takes keys as commands unless the focused element itself says that they stay with it.
  const keepKeys = () => {
    if (window.gemmKeys) return;
    window.gemmKeys = true;
    const mark = (event) => {
      if (event.target.closest?.(".gl-live, .gl")) event.target.setAttribute("data-lm-suppress-shortcuts", "true");
    };
    window.addEventListener("keydown", mark, true);
  };

  const mount = () => {
    keepKeys();
    for (const host of document.querySelectorAll(".gl-q:not([data-state])")) {
      host.dataset.state = "open";
      build(host);
    }
    for (const cell of document.querySelectorAll("[data-said]:not([data-told])")) {
      cell.dataset.told = "";
      tell(cell.dataset.said);
    }
  };
  return { judge, number, off, far, shown, unit, mount };
})();
