// JupyterLab: a %%kernel cell is coloured as C++, the nearest to CUDA that the editor knows.
// A federated extension by hand: a container with `init` and `get`, as module federation asks, so that nothing is to be built.
// `make lab` hands this folder to JupyterLab (LabServerApp.extra_labextensions_path).
(() => {
  const MAGIC = "%%kernel";
  const CUDA = "text/x-c++src";
  const MODULE = "__esModule"; // without this mark JupyterLab takes the whole module for a plugin
  let shared = {};

  const colour = (model) => {
    if (model.type !== "code" || model.mimeType === CUDA) return;
    if (model.sharedModel.getSource().startsWith(MAGIC)) model.mimeType = CUDA;
  };
  // JupyterLab gives all cells the kernel's language, anew whenever it learns which that is.
  const watch = (model, watched) => {
    if (watched.has(model)) return;
    watched.add(model);
    model.mimeTypeChanged.connect(colour);
    model.contentChanged.connect(colour);
    colour(model);
  };
  const watchAll = (panel, watched) => {
    const cells = panel.content.model?.cells ?? [];
    for (const model of cells) watch(model, watched);
  };

  const extension = async () => {
    const [offered] = Object.values(shared["@jupyterlab/notebook"]);
    const notebook = (await offered.get())();
    return {
      id: "gemm-ladder-cuda:plugin",
      autoStart: true,
      requires: [notebook.INotebookTracker],
      activate: (app, tracker) => {
        const watched = new WeakSet();
        const open = (panel) =>
          panel.context.ready.then(() => {
            watchAll(panel, watched);
            panel.content.model?.cells.changed.connect(() => watchAll(panel, watched));
          });
        tracker.forEach(open);
        tracker.widgetAdded.connect((_, panel) => open(panel));
      },
    };
  };

  const LAB = "_JUPYTERLAB"; // where JupyterLab looks for what it loaded
  window[LAB] ??= {};
  window[LAB]["gemm-ladder-cuda"] = {
    init: (scope) => {
      shared = scope;
    },
    get: async (name) => {
      if (name !== "./extension") throw new Error(`gemm-ladder-cuda has no module ${name}`);
      const plugin = await extension();
      return () => ({ [MODULE]: true, default: plugin });
    },
  };
})();
