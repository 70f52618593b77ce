"""Which cells nbval re-runs without comparing their outputs, one by one.

A cell is excused when its output depends on the machine: a time, the name of the GPU.
Everything else is compared. Adding a cell to this list is a decision; so it is written here.
"""

from book import chapters

EXCUSED = {  # chapter -> first lines of its excused cells, in order
    "intro": [
        "from book.cells import answers, timing",
    ],
    "essay": [
        "import figures",
        "the_machine.picture()",
    ],
    "01_start_here": [
        "from time import perf_counter",
        "figures.bars(",
        "timed = first_call.measure()",
        'method = "clock around everything"',
        'timing.compare(["uncoalesced", "naive", "mma_multistage"])',
    ],
    "02_the_machine": [
        "the_machine.picture()",
        "the_machine.show_units(",
        "the_machine.show_latencies(",
        "the_machine.show_bandwidths(",
        "the_machine.show_power(",
    ],
    "03_one_thread_one_output": [
        'timing.compare(["uncoalesced", "naive"])',
        'why("uncoalesced", "naive")',
    ],
    "04_tiles_in_shared_memory": [
        'timing.compare(["naive", "tiled"], inputs="float32")',
        'why("naive", "tiled")',
    ],
    "05_more_work_per_thread": [
        'timing.compare(["tiled", "coarsened_1d", "coarsened_2d"], inputs="float32")',
        'why("tiled", "coarsened_1d", "coarsened_2d")',
        "limits.stalls(",
        'timing.compare(["tiled", "coarsened_1d", "coarsened_2d"], size=1024, inputs="float32")',
    ],
    "06_wide_loads": [
        'timing.compare(["coarsened_2d", "vectorized"], inputs="float32")',
        'why("coarsened_2d", "vectorized")',
        "limits.stalls(",
    ],
    "07_warp_tiles": [
        "warp_ablation.show_times()",
        'timing.compare(["coarsened_2d", "vectorized", "warp_tiled"], inputs="float32")',
        'thread_work.show_waves("warp_tiled", 1024, 2048, 4096, 8192)',
        'why("vectorized", "warp_tiled")',
        "limits.stalls(",
    ],
    "08_copies_that_do_not_wait": [
        'timing.compare(["warp_tiled", "async_copy"])',
        'why("warp_tiled", "async_copy")',
        "copies.show_equal_tiles()",
    ],
    "09_pipelines": [
        'timing.compare(["warp_tiled", "async_copy", "async_pipeline", "warp_specialized"])',
        'why("warp_tiled", "async_pipeline", "warp_specialized")',
        "limits.stalls(",
        'tuned.show("async_pipeline", "STAGES")',
    ],
    "11_tensor_cores_through_wmma": [
        'timing.compare(["wmma", "wmma_shared", "wmma_async"])',
        "limits.wait_choice(",
    ],
    "12_inside_an_mma": [
        'timing.compare(["wmma", "mma_atoms"])',
    ],
    "13_ldmatrix": [
        'timing.compare(["wmma_async", "mma_atoms", "mma_sync", "mma_tiled"])',
    ],
    "14_bank_conflicts": [
        "shared_clocks.show_loads()",
        'timing.compare(["mma_tiled", "mma_padded"])',
        "limits.wait_choice(",
        "small_tiles.show_share()",
    ],
    "15_swizzles": [
        'timing.compare(["mma_tiled", "mma_padded", "mma_swizzled"])',
        "limits.wait_choice(",
    ],
    "17_everything_at_once": [
        'timing.compare(["mma_swizzled", "mma_multistage"])',
    ],
    "18_tf32": [
        'timing.compare(["warp_tiled", "mma_swizzled", "mma_tf32"], title="TF32 beside others")',
    ],
    "19_tuning": [
        'tile = {"BM": 128, "BN": 256, "WM": 64, "WN": 64}',
    ],
    "20_tiles_by_tma": [
        'one_type.compare(["mma_multistage", "tma_mma"], 4096)',
    ],
    "21_wgmma": [
        'one_type.compare(["mma_multistage", "tma_mma", "wgmma"], 4096)',
    ],
    "22_roles_and_pipelines": [
        'one_type.compare(["tma_mma", "wgmma", "wgmma_pipelined"], 4096)',
    ],
    "reading_a_profile": [
        "limits.show(",
        "profile_terms.stalls(",
        'profile_terms.places("mma_multistage", "wgmma_persistent", "wgmma_cluster")',
        "profile_terms.traffic(",
        "profile_terms.clock_table(",
    ],
    "23_the_whole_machine": [
        'one_type.compare(["wgmma_pipelined", "wgmma_persistent", "wgmma_cluster"], 4096)',
        'one_type.compare(["wgmma_pipelined", "wgmma_persistent", "wgmma_cluster"], 8192)',
    ],
    "24_shapes_that_are_not_square": [
        'one_type.shapes(odd_shapes.SHAPES, ["wgmma_persistent", "wgmma_split"])',
    ],
    "25_fewer_bits": [
        'one_type.compare(["wgmma_fp8"], 8192, inputs="float8_e4m3fn", output="bfloat16")',
        'one_type.compare(["wgmma_fp8"], 8192, inputs="tf32", output="float32")',
    ],
    "31_the_ladder": [
        "timing.ladder()",
    ],
    "39_the_same_kernel_in_triton": [
        "triton_ptx.speeds()",
        "cute_ptx.speeds()",
    ],
    "40_use": [
        "use.speeds()",
    ],
    "32_one_template_argument": [
        "published.show_times(",
    ],
    "33_slower_by_specialising": [
        "published.show_times(",
    ],
    "34_an_asynchronous_copy_that_is_not": [
        'published.show_times(*names, title="One kernel, four widths of a copy")',
    ],
    "35_two_tilings_and_a_clock": [
        "published.show_times(",
        "published.show_times(",
        "published.show_managed(",
    ],
    "36_a_right_program_with_wrong_results": [
        'published.show_wrong(title="Outputs that are wrong, in three launches of each")',
    ],
    "appendix_emulator": [
        "faithful.counted()",
        "faithful.differences()",
        'faithful.empty_copies("mma_tf32", "mma_multistage")',
        "faithful.rungs_found_clean()",
        "faithful.seeded_mistakes()",
    ],
    "appendix_hardware": [
        "about = recorded().machine",
    ],
    "appendix_measurements": [
        "limits.show_sustained()",
        "method.show_files()",
    ],
    "lab3": [
        'evidence.at_full_size(source("lab3"))',
        "evidence.at_full_size(*evidence.LADDER)",
    ],
    "progress": [
        "progress()",
    ],
}


def excused(notebook) -> list[str]:
    return [
        cell.source.splitlines()[0]
        for cell in notebook.cells
        if cell.cell_type == "code"
        and chapters.has_tag(cell, "nbval-ignore-output")
        and not chapters.has_tag(cell, chapters.SETUP_TAG)
    ]


def test_the_excused_cells_are_these(notebooks):
    found = {name: cells for name, notebook in notebooks.items() if (cells := excused(notebook))}
    for name in {**found, **EXCUSED}:
        assert found.get(name, []) == EXCUSED.get(name, []), name


def test_no_cell_is_excused_from_running(notebooks):
    for name, notebook in notebooks.items():
        for cell in notebook.cells:
            assert not chapters.has_tag(cell, "nbval-skip"), name


def test_most_cells_are_compared(notebooks):
    for name, notebook in notebooks.items():
        cells = [c for c in notebook.cells if c.cell_type == "code" and c.outputs]
        assert len(excused(notebook)) <= len(cells) / 2, name
