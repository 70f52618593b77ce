// A page without a kernel: draws every stored anywidget from the state saved in its notebook.
// Stands in for Jupyter's html-manager and require.js, which would come from another host.
(async () => {
  const of = (kind) => document.querySelectorAll(
    `script[type="application/vnd.jupyter.widget-${kind}+json"]`);

  // Binary traits are stored beside the state, as base64 with the path to where they belong.
  const restore = ({ state, buffers = [] }) => {
    for (const { path, data } of buffers) {
      const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
      const last = path.at(-1);
      path.slice(0, -1).reduce((at, key) => at[key], state)[last] = new DataView(bytes.buffer);
    }
    return state;
  };

  // What a widget's front end needs of a model: get, set, and events on change.
  const makeModel = (state) => {
    const listeners = new Map();
    const fire = (event) => [...(listeners.get(event) ?? [])].forEach((call) => call());
    return {
      get: (key) => state[key],
      set: (key, value) => {
        state[key] = value;
        fire(`change:${key}`);
        fire("change");
      },
      on: (event, call) => listeners.set(event, (listeners.get(event) ?? new Set()).add(call)),
      off: (event, call) => (call ? listeners.get(event)?.delete(call) : listeners.clear()),
      save_changes: () => {},
      send: () => {},
    };
  };

  const stored = {};
  for (const script of of("state")) Object.assign(stored, JSON.parse(script.textContent).state);

  const load = async (id) => {
    const state = restore(stored[id]);
    const url = URL.createObjectURL(new Blob([state._esm], { type: "text/javascript" }));
    const module = await import(url);
    const exported = module.default ?? module;
    const widget = typeof exported === "function" ? await exported() : exported;
    const model = makeModel(state);
    await widget.initialize?.({ model });
    if (state._css) {
      document.head.append(Object.assign(document.createElement("style"), { textContent: state._css }));
    }
    return { widget, model };
  };

  const loading = {};
  for (const script of of("view")) {
    const id = JSON.parse(script.textContent).model_id;
    if (!stored[id]?.state?._esm) continue;
    const el = document.createElement("div");
    el.className = "widget";
    script.after(el);
    try {
      const { widget, model } = await (loading[id] ??= load(id));
      await widget.render({ model, el });
    } catch (error) {
      el.textContent = "This figure moves only in a newer browser or in the notebook.";
      console.error(error);
    }
  }
})();
