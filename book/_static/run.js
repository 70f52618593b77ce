// Runs this page's cells in the reader's browser. Nothing is loaded before a button is pressed; then all comes from this site.
/* global DOCUMENTATION_OPTIONS */

const RUN_ROOT = new URL(".", document.currentScript.src).href;

const make = (tag, words = "", kind = "") =>
  Object.assign(document.createElement(tag), { textContent: words, className: kind });

const button = (words, label, act) => {
  const made = make("button", words);
  made.type = "button";
  made.setAttribute("aria-label", label);
  made.addEventListener("click", act);
  return made;
};

const under = (node, before) => {
  for (const sibling of node.children) if (sibling.matches(before)) return sibling;
  return null;
};

// What a cell showed, as Python described it: HTML, text, or an error.
const shown = (one) => {
  if (one.html !== undefined) {
    const made = make("div", "", "output text_html");
    made.innerHTML = one.html;
    return made;
  }
  const made = make("div", "", one.error ? "output stream run-failed" : "output stream");
  made.append(make("pre", one.text));
  return made;
};

// Scripts that came as text do not run; copies of them do.
const revive = (place) => {
  for (const old of place.querySelectorAll("script")) old.replaceWith(make("script", old.textContent));
};

const elsewhere = (error) => {
  const said = make("p", "", "run-said");
  const why = {
    NoCompiler: "This needs a CUDA compiler, which a browser does not have. ",
    NameError: "This needs a cell above that cannot run in a browser. ",
  };
  said.append(why[error.error] ?? `${error.line.replace(/^\w+: /, "")} `);
  const colab = document.querySelector('a[href*="colab.research.google.com"]')?.href;
  if (colab) said.append(Object.assign(make("a", "Open this page in Colab"), { href: colab }), ".");
  else said.append("In Colab and on a laptop it runs (make lab).");
  said.append(" What stands here is the book's.");
  return said;
};

// One cell of the page: its code, which the reader may edit, and its output, which stays until there is a new one.
class RunCell {
  constructor(place, nth, run) {
    Object.assign(this, { place, nth, run, editor: null, stored: null, source: null, notes: [] });
    place.id ||= `run-cell-${nth}`;
    this.index = Number(/run-cell-(\d+)/.exec(place.className)[1]);
    const input = place.querySelector(".cell_input");
    this.code = input?.querySelector(".highlight");
    if (!this.code) return;
    this.tools = make("div", "", "run-tools");
    this.change = button("Edit", `Edit cell ${nth}`, () => (this.editor ? this.close(true) : this.edit()));
    this.tools.append(
      button("Run", `Run cell ${nth}`, () => run(this)),
      this.change,
    );
    input.append(this.tools);
  }

  edit() {
    const text = this.code.querySelector("pre").textContent.replace(/\n$/, "");
    const editor = make("textarea", "", "run-edit");
    Object.assign(editor, { value: text, rows: text.split("\n").length + 1, spellcheck: false, autocapitalize: "off" });
    editor.setAttribute("aria-label", `Code of cell ${this.nth}; Shift and Enter runs it`);
    editor.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || !(event.shiftKey || event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      this.run(this);
    });
    this.code.hidden = true;
    this.tools.before(editor);
    this.editor = editor;
    editor.setSelectionRange(0, 0); // else a narrow screen shows the ends of its lines
    this.change.textContent = "Restore";
    this.change.setAttribute("aria-label", `Restore cell ${this.nth}`);
    editor.focus();
  }

  close(focus = false) {
    this.editor?.remove();
    this.editor = null;
    if (!this.code) return;
    this.code.hidden = false;
    this.change.textContent = "Edit";
    this.change.setAttribute("aria-label", `Edit cell ${this.nth}`);
    if (focus) this.change.focus();
  }

  output() {
    let found = under(this.place, ".cell_output");
    if (!found) {
      found = make("div", "", "cell_output docutils container");
      this.place.append(found);
    }
    this.stored ??= [...found.childNodes];
    return found;
  }

  note(...notes) {
    for (const old of this.notes) old.remove();
    this.notes = notes;
    this.output().after(...notes);
  }

  ran({ outputs, elsewhere: elsewhereNow, seconds }) {
    this.place.classList.remove("run-busy");
    const output = this.output();
    if (elsewhereNow) {
      output.replaceChildren(...this.stored);
      this.note(elsewhere(outputs.at(-1)));
      return;
    }
    output.replaceChildren(...outputs.map(shown));
    revive(output);
    const time = seconds < 0.1 ? "less than 0.1" : seconds.toFixed(1);
    this.note(make("p", `Ran in your browser in ${time} s.`, "run-said"));
  }

  reset() {
    this.close();
    this.place.classList.remove("run-busy");
    if (!this.stored) return;
    this.output().replaceChildren(...this.stored);
    this.note();
  }
}

const runPage = () => {
  const about = window.gemmRun;
  const article = document.querySelector("article.bd-article");
  const places = [...document.querySelectorAll('[class*="run-cell-"]')];
  if (!about || !article || !places.length) return;
  const bar = make("div", "", "run-bar");
  (article.querySelector(".reading-time") ?? article.querySelector("h1")).after(bar);
  if (location.protocol === "file:") {
    const command = "python -m http.server --bind 127.0.0.1";
    bar.append(make("p", "These cells can run, from a web server of your own: in the pages' folder, ", "run-status"));
    bar.lastChild.append(make("code", command), ", then open http://localhost:8000/.");
    return;
  }

  const name = DOCUMENTATION_OPTIONS.pagename.replaceAll("/", "-");
  const base = `${RUN_ROOT}run/`;
  let worker = null;
  let sources = null;
  let asked = 0; // grows with every request and every stop: an answer to an older one is late
  let busy = false;
  let failed = null; // the cell that did
  let form = null; // the one that waits for an answer

  bar.setAttribute("role", "group");
  bar.setAttribute("aria-label", "Run this page");
  const megabytes = (about.bytes / 1e6).toFixed(0);
  const stand = about.standIn ? " For tests only: its NumPy is a stand-in." : "";
  const status = make(
    "p",
    `Runs in your browser: loads Python and the kernels, ${megabytes} MB.${stand}`,
    "run-status",
  );
  status.setAttribute("role", "status");
  const progress = make("progress");
  Object.assign(progress, { max: about.bytes, hidden: true });
  progress.setAttribute("aria-label", "Loading Python");
  const say = (words) => (status.textContent = words);

  const idle = () => {
    busy = false;
    bar.classList.remove("run-working");
    form = null;
    stop.disabled = true;
    progress.hidden = true;
    for (const { place } of cells.values()) place.classList.remove("run-busy");
  };
  const end = () => {
    asked += 1;
    worker?.terminate();
    worker = null;
    for (const old of article.querySelectorAll("form.run-form")) old.remove(); // what they would call is gone
    idle();
  };
  const broke = (why) => {
    end();
    say(`Python could not go on: ${why}`);
  };
  const hear = {
    loads({ bytes }) {
      progress.value = bytes;
    },
    ready() {
      progress.hidden = true;
    },
    begins({ index }) {
      const cell = cells.get(index);
      if (!cell) return;
      cell.place.classList.add("run-busy");
      say(`Cell ${cell.nth} of ${cells.size} runs.`);
    },
    ran({ index, more }) {
      failed = more.well || more.elsewhere ? null : cells.get(index);
      // Python knows the notebook's cells; those that the reader sees are numbered from 1.
      for (const one of more.outputs)
        if (one.error)
          one.text = one.text.replace(/<cell (\d+)>/g, (all, at) => {
            const nth = cells.get(Number(at))?.nth;
            return nth ? `<cell ${nth}>` : all;
          });
      cells.get(index)?.ran(more);
    },
    called({ outputs }) {
      const place = form.querySelector(".run-answer");
      place.replaceChildren(...outputs.map(shown));
      revive(place);
    },
    finished({ well, memory }) {
      idle();
      const done = well ? "Done." : "A cell failed; its message stands below it.";
      say(`${done} Python uses ${Math.round(memory / 1e6)} MB.`);
      if (well || !failed) return;
      const there = make("a", `Go to cell ${failed.nth}`);
      there.href = `#${failed.place.id}`;
      status.append(" ", there, ".");
    },
    broke({ why }) {
      broke(why);
    },
  };
  const send = async (what) => {
    if (busy) return;
    busy = true;
    failed = null;
    stop.disabled = false;
    bar.classList.add("run-working"); // it stays in sight: what happens is said there, and what stops it is there
    cells.get(what.index)?.place.classList.add("run-busy");
    const mine = ++asked;
    if (!worker) {
      say("Loading Python.");
      progress.value = 0;
      progress.hidden = false;
    }
    try {
      if (!sources) {
        const answer = await fetch(`${base}pages/${name}.json?v=${about.mark}`);
        if (!answer.ok) throw new Error(`${answer.status} for this page's cells`);
        sources = (await answer.json()).cells;
      }
    } catch (error) {
      if (mine === asked) broke(error.message);
      return;
    }
    if (mine !== asked) return; // stopped meanwhile
    if (!worker) {
      worker = new Worker(`${RUN_ROOT}run_worker.js?v=${about.mark}`);
      worker.addEventListener("message", ({ data }) => hear[data.what](data));
      worker.addEventListener("error", (error) => broke(error.message || "its worker did not start"));
    }
    const now = sources.map((cell) => ({ ...cell, source: cells.get(cell.index)?.editor?.value ?? cell.source }));
    worker.postMessage({ base, mark: about.mark, name, cells: now, ...what });
  };

  const cells = new Map();
  for (const place of places) {
    const cell = new RunCell(place, cells.size + 1, ({ index }) => send({ index }));
    cells.set(cell.index, cell);
  }
  const stop = button("Stop", "Stop", () => {
    end();
    say("Stopped. The next run starts Python again.");
  });
  stop.disabled = true;
  const reset = button("Reset", "Reset the page", () => {
    end();
    for (const cell of cells.values()) cell.reset();
    say("Code and outputs are the book's again.");
  });
  bar.append(
    button("Run this page", "Run this page", () => send({})),
    stop,
    reset,
    progress,
    status,
  );
  // Forms that a cell showed here ask Python again: free settings of an explorer.
  article.addEventListener("submit", (event) => {
    if (!event.target.matches("form.run-form") || busy) return;
    event.preventDefault();
    form = event.target;
    const values = Object.fromEntries([...new FormData(form)].map(([key, value]) => [key, Number(value)]));
    send({ call: Number(form.dataset.call), values });
  });
};

// `run_files.js` says whether the site has Python; it changes when that is added, so it has no mark of the build.
const runFiles = document.createElement("script");
runFiles.src = `${RUN_ROOT}run_files.js`;
runFiles.addEventListener("load", runPage);
document.head.append(runFiles);
