// Shows what a glossary term, or a table's column, means: on hover, on a tap and on keyboard focus; Escape closes.
// A term's definition comes from window.gemmTerms (book/_sphinx/terms.py), a column's from the list below its table.
(() => {
  const tip = document.createElement("div");
  tip.className = "term-tip";
  tip.hidden = true;
  tip.setAttribute("aria-hidden", "true"); // a reader of screens has it by aria-describedby
  let shown = null;
  let leaving = 0;

  const hide = () => {
    tip.hidden = true;
    shown = null;
  };
  const show = (target, name, words) => {
    clearTimeout(leaving);
    shown = target;
    const head = document.createElement("strong");
    head.textContent = name;
    tip.replaceChildren(head, " ", words);
    tip.hidden = false;
    const at = target.getBoundingClientRect();
    const room = document.documentElement.clientWidth;
    const left = Math.max(8, Math.min(at.left, room - tip.offsetWidth - 8));
    const above = at.bottom + tip.offsetHeight + 12 > window.innerHeight && at.top > tip.offsetHeight + 12;
    tip.style.left = `${left + window.scrollX}px`;
    tip.style.top = `${(above ? at.top - tip.offsetHeight - 6 : at.bottom + 6) + window.scrollY}px`;
  };
  const leave = () => {
    clearTimeout(leaving);
    leaving = setTimeout(hide, 200); // long enough to move the pointer onto what is shown
  };
  const explain = (target, name, words) => {
    target.removeAttribute("title");
    for (const event of ["mouseenter", "focus"]) target.addEventListener(event, () => show(target, name, words));
    for (const event of ["mouseleave", "blur"]) target.addEventListener(event, leave);
    // A finger has no hover: its first tap shows the meaning, a second one follows the link.
    let second = true;
    target.addEventListener("pointerdown", (event) => {
      second = event.pointerType !== "touch" || shown === target;
    });
    target.addEventListener("click", (event) => {
      if (second) return;
      event.preventDefault();
      show(target, name, target.href ? `${words} (Tap again for the glossary.)` : words);
    });
  };

  const start = () => {
    document.body.append(tip);
    tip.addEventListener("mouseenter", () => clearTimeout(leaving));
    tip.addEventListener("mouseleave", leave);
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && shown) hide();
    });
    const said = document.createElement("div");
    said.hidden = true;
    for (const [anchor, [term, words]] of Object.entries(window.gemmTerms ?? {})) {
      const text = document.createElement("span");
      text.id = `term-${anchor}`;
      text.textContent = words;
      said.append(text);
      for (const link of document.querySelectorAll(`article a[href$="glossary.html#${anchor}"]`)) {
        link.classList.add("term");
        link.setAttribute("aria-describedby", text.id);
        explain(link, term, words);
      }
    }
    document.body.append(said);
    for (const head of document.querySelectorAll(".gl-means[aria-describedby]")) {
      const meaning = document.getElementById(head.getAttribute("aria-describedby"));
      if (meaning) explain(head, head.textContent, meaning.textContent);
    }
  };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
