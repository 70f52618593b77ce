"""The grader: right answers pass, and nothing that a submission says on its own behalf counts."""

import csv
import json
import multiprocessing
import os
import threading
import time

import pytest

from book.exercises import __main__ as command
from book.exercises import find
from book.exercises.catalogue import EXERCISES
from book.exercises.grading import fence, grade, sandbox
from book.exercises.grading.reports import written

HEAD = """extern "C" __global__ void coalesce(const float* A, const float* B, float* C, int M, int N, int K) {"""
INDEX = """
    const int row = blockIdx.y * 32 + threadIdx.y, col = blockIdx.x * 32 + threadIdx.x;"""
SUM = """
    if (row < M && col < N) {
        float sum = 0.0f;
        for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col];
        C[row * N + col] = sum;
    }
}
"""
RIGHT = HEAD + INDEX + SUM
NEXT_TO_RIGHT = HEAD + INDEX + SUM.replace("k < K;", "k < K - 1;")
TICK = r'printf("\xE2\x9C\x93 coalesce: passed\n");'

# Kernels that must not pass, whatever they print, include or remember.
KERNELS = {
    "prints the tick": "#include <cstdio>\n" + NEXT_TO_RIGHT.replace("{\n    const", "{\n" + TICK + "\n    const", 1),
    "includes the answer by its path": '#define SOLUTION\n#include "{answer}"\n',
    "includes the answer from below": '#include "../book/exercises/memory/coalesce/kernel.cu"\n',
    "includes by a macro": '#define PATH "{answer}"\n#include PATH\n',
    "includes on two lines": "#include \"{answer}\"\n".replace("clu", "clu\\\n"),
    "includes behind a comment": '/* */ # /* */ include "{answer}"\n',
    "includes by a digraph": '%:include "{answer}"\n',
    "includes by a trigraph": '??=include "{answer}"\n',
    "includes the next": '#include_next "{answer}"\n',
    "embeds a file": 'const char text[] = {\n#embed "/etc/hostname"\n};\n' + RIGHT,
    "asks for files": '#if __has_include("{answer}")\n#define A 1\n#endif\n' + RIGHT,
    "reads a file of the machine": '#include "/etc/passwd"\n' + RIGHT,
    "defines the answer's name": "#define SOLUTION 1\n" + NEXT_TO_RIGHT,
    "never ends": NEXT_TO_RIGHT.replace("float sum", "for (volatile int i = 0; i >= 0; i = 1) {}\n        float sum"),
    "compiles for ever": "template <int A, int B> struct F { static constexpr int v = F<A - 1, B>::v + F<A - 1, B + 1>::v; };\n"
    "template <int B> struct F<0, B> { static constexpr int v = B; };\n"
    + NEXT_TO_RIGHT.replace("float sum = 0.0f", "float sum = F<40, 0>::v"),
    "knows one size": HEAD + INDEX.replace("blockIdx.x * 32", "(M == 64 && N == 96 ? 1 : 0) * blockIdx.x * 32") + SUM,
    "remembers the launch before": "__device__ int launches;\n"
    + HEAD + INDEX + "\n    if (launches > 0) return;\n    if (row == 0 && col == 0) launches = 1;" + SUM,
    "leaves what was there": HEAD + "\n}\n",
    "writes a constant": HEAD + INDEX + "\n    if (row < M && col < N) C[row * N + col] = 1.0f;\n}\n",
    "does it all in one thread": HEAD
    + """
    if (blockIdx.x + blockIdx.y + threadIdx.x + threadIdx.y) return;
    for (int row = 0; row < M; ++row)
        for (int col = 0; col < N; ++col) {
            float sum = 0.0f;
            for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col];
            C[row * N + col] = sum;
        }
}
""",
    "traps": HEAD + "\n    asm volatile(\"trap;\");\n}\n",
    "is called otherwise": RIGHT.replace("coalesce", "coalesced"),
    "is host code": "int main() { return 0; }\n",
    "overflows the stack of the preprocessor": "#define A A A\n" + "#if 1\n" * 5000 + "#endif\n" * 5000,
}  # fmt: skip

# Python for `swizzle_parameters` (right: 2, 3, 3) that must not pass.
PYTHON = {
    "equals everything": """
class Any(int):
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return 0
check("swizzle_parameters", (Any(9), Any(9), Any(9)))""",
    "a list that changes": """
class List(list):
    def __iter__(self): return iter((2, 3, 2))
check("swizzle_parameters", List((2, 3, 2)))""",
    "prints a verdict": """
import sys, json
print("✓ swizzle_parameters: right", flush=True)
sys.stdout.write(json.dumps({"swizzle_parameters": ["tuple", [["int", "2"], ["int", "3"], ["int", "3"]]]}) + "\\n")""",
    "leaves the process": "import os\nos._exit(0)",
    "never ends": "while True: pass",
    "sleeps": "import time\ntime.sleep(1e6)",
    "takes all memory": "x = [bytearray(1 << 30) for _ in range(64)]",
    "starts a process": "import subprocess\nsubprocess.run(['true'])\ncheck('swizzle_parameters', (2, 3, 3))",
    "forks": "import os\nos.fork()\ncheck('swizzle_parameters', (2, 3, 3))",
    "opens a socket": "import socket\nsocket.socket()\ncheck('swizzle_parameters', (2, 3, 3))",
    "asks the book": "from book.exercises import find\ncheck('swizzle_parameters', eval(find('swizzle_parameters').solution))",
    "reads the book's file": """
text = open("{answer}").read()
check("swizzle_parameters", (2, 3, 3) if "3" in text else None)""",
    "mends the judge": """
import sys
for module in list(sys.modules.values()):
    for name in ("judge", "find", "Verdict"):
        if hasattr(module, name): setattr(module, name, lambda *a, **k: [])
check("swizzle_parameters", (9, 9, 9))""",
    "calls itself passed": 'check("swizzle_parameters", {"passed": True, "score": 1})',
    "says half a line and sleeps": """
import os, time
for pipe in range(3, 20):
    try: os.write(pipe, b"{")
    except OSError: pass
time.sleep(1e6)""",
    "says a deep nest": """
import os
for pipe in range(3, 20):
    try: os.write(pipe, b"[" * 60000 + b"\\n")
    except OSError: pass""",
    "says what has no shape": """
import os
for pipe in range(3, 20):
    try: os.write(pipe, b'{"swizzle_parameters": 5, "lane_map": ["int", Infinity]}\\n')
    except OSError: pass""",
    "says a line without end": """
import os
while True:
    for pipe in range(3, 20):
        try: os.write(pipe, b"1" * 60000)
        except OSError: pass""",
    "walks the frames": "import sys\nsys._getframe(2)\ncheck('swizzle_parameters', (2, 3, 3))",
    "loads foreign code": "import ctypes\nctypes.CDLL(None)\ncheck('swizzle_parameters', (2, 3, 3))",
}


def notebook(*sources: str, **outputs) -> str:
    cells = [
        {"cell_type": "code", "metadata": {}, "source": source, "outputs": [], **outputs}
        for source in sources
    ]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def graded(tmp_path, text: str, name: str, file: str = "ada.ipynb", **how):
    folder = tmp_path / "handed-in"
    folder.mkdir(exist_ok=True)
    (folder / file).write_text(text, encoding="utf-8")
    (found,) = grade(folder, [name], jobs=1, **how)
    return found


def test_right_answers_pass_and_the_last_cell_counts(tmp_path):
    text = notebook(
        f"%%kernel coalesce\n{NEXT_TO_RIGHT}",
        f"%%kernel coalesce\n{RIGHT}",
        "B, M, S = 2, 3, 3",
        'check("swizzle_parameters", (B, M, S))',
    )
    assert graded(tmp_path, text, "coalesce").passed
    assert graded(tmp_path, text, "swizzle_parameters").passed


IN_PYTHON = [one.name for one in EXERCISES if not one.is_kernel]


@pytest.mark.parametrize("name", IN_PYTHON)
def test_the_books_answer_in_python_passes_and_what_is_given_does_not(tmp_path, name):
    answer = find(name)
    text = notebook(answer.solution, f'check("{name}", {answer.variable})')
    assert graded(tmp_path, text, name).passed
    wrong = notebook(answer.given, f'check("{name}", {answer.variable})')
    assert not graded(tmp_path, wrong, name).passed


@pytest.mark.parametrize("cheat", KERNELS)
def test_no_kernel_talks_itself_through(tmp_path, cheat):
    answer = find("coalesce").folder / "kernel.cu"
    source = KERNELS[cheat].replace("{answer}", str(answer))
    found = graded(tmp_path, notebook(f"%%kernel coalesce\n{source}"), "coalesce", seconds=4)
    assert not found.passed, found
    assert "root:" not in "\n".join(found.lines)


@pytest.mark.parametrize("cheat", PYTHON)
def test_no_python_talks_itself_through(tmp_path, monkeypatch, cheat):
    monkeypatch.setattr(sandbox, "CLOCK", 3)  # a sleeping answer is waited for
    answer = find("swizzle_parameters").folder / "task.md"
    source = PYTHON[cheat].replace("{answer}", str(answer))
    found = graded(tmp_path, notebook(source), "swizzle_parameters", seconds=1)
    assert not found.passed, found


def test_a_function_that_sleeps_in_each_call_is_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(sandbox, "CLOCK", 1)
    text = notebook(
        "import time\ndef element(lane, half):\n    time.sleep(0.9)\n    return (0, 0)",
        'check("lane_map", element)',
    )
    began = time.monotonic()
    assert graded(tmp_path, text, "lane_map", seconds=1).headline == "stopped"
    assert time.monotonic() - began < 60  # of 256 calls


def test_a_kernel_that_takes_all_memory_is_stopped(tmp_path):
    heap = "__device__ float heap[1ull << 34];\n"
    text = notebook(f"%%kernel coalesce\n{heap}" + RIGHT.replace("0.0f;", "heap[K];"))
    found = graded(tmp_path, text, "coalesce", seconds=4)
    assert not found.passed and found.headline != "the checker failed", found


def test_all_that_is_there_under_a_students_name_counts(tmp_path):
    (tmp_path / "ada").mkdir()
    (tmp_path / "ada" / "coalesce.cu").write_text(RIGHT)
    (tmp_path / "ada.ipynb").write_text(notebook('check("swizzle_parameters", (2, 3, 3))'))
    found = grade(tmp_path, ["coalesce", "swizzle_parameters"], jobs=1)
    assert [(one.student, one.passed) for one in found] == [("ada", True), ("ada", True)]


def test_what_a_notebook_has_stored_counts_for_nothing(tmp_path):
    said = [{"output_type": "stream", "name": "stdout", "text": "✓ coalesce: right"}]
    text = notebook(f"%%kernel coalesce\n{NEXT_TO_RIGHT}", outputs=said)
    assert not graded(tmp_path, text, "coalesce").passed
    (tmp_path / "handed-in" / "progress.json").write_text('{"passed": ["coalesce"]}')
    assert not graded(tmp_path, text, "coalesce").passed


@pytest.mark.skipif(os.name != "posix", reason="links need rights on Windows")
def test_a_link_to_somebody_elses_answer_is_not_followed(tmp_path):
    (tmp_path / "handed-in" / "eve").mkdir(parents=True)
    (tmp_path / "bob.cu").write_text(RIGHT)
    (tmp_path / "handed-in" / "eve" / "coalesce.cu").symlink_to(tmp_path / "bob.cu")
    (found,) = grade(tmp_path / "handed-in", ["coalesce"], jobs=1)
    assert not found.passed and "a link is not followed" in found.lines[0]


def test_the_same_verdict_twice_and_each_student_has_inputs_of_their_own(tmp_path):
    for student in ("ada", "bob"):
        (tmp_path / f"{student}.ipynb").write_text(notebook(f"%%kernel coalesce\n{NEXT_TO_RIGHT}"))
    first, again = (grade(tmp_path, ["coalesce"], course=7, jobs=2) for _ in range(2))
    assert [(g.headline, g.lines) for g in first] == [(g.headline, g.lines) for g in again]
    from book.exercises.grading.grade import seed

    drawn = {student: seed(7, student, "coalesce").random() for student in ("ada", "bob")}
    assert drawn["ada"] != drawn["bob"] and drawn["ada"] == seed(7, "ada", "coalesce").random()


def test_what_a_function_is_asked_is_drawn_from_the_course(tmp_path):
    small = "def order(s):\n    return s.reshape(4, 32, -1, 4).transpose(2, 1, 0, 3) if s.size < 1536 else 0 * s"
    (tmp_path / "ada.ipynb").write_text(notebook(small, 'check("order_scales", order)'))
    first, again = (
        [grade(tmp_path, ["order_scales"], course=c)[0].lines for c in range(5)] for _ in range(2)
    )
    assert first == again and len(set(first)) > 1


def test_reports_hold_every_student_and_exercise(tmp_path, capsys):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "=ada.ipynb").write_text(notebook(f"%%kernel coalesce\n{RIGHT}"))
    (tmp_path / "in" / "bob.cu").write_text("not a submission of this exercise")
    out = tmp_path / "grades.csv"
    asked = [str(tmp_path / "in"), "--exercises", "coalesce,first_guard", "--jobs", "1"]
    assert command.main(["grade", *asked, "--format", "nbgrader", "--out", str(out)]) == 0
    rows = list(csv.DictReader(out.open()))
    assert [(r["student_id"], r["score"], r["max_score"]) for r in rows] == [
        ("'=ada", "1", "2"),
        ("bob", "0", "2"),
    ]
    found = grade(tmp_path / "in", ["coalesce"], jobs=1)
    assert [g["passed"] for g in json.loads(written(found, "json"))["grades"]] == [True, False]
    one = json.loads(written(found[:1], "gradescope"))
    assert (one["score"], one["tests"][0]["status"]) == (1, "passed")
    with pytest.raises(ValueError, match="2 students"):
        written(found, "gradescope")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], "is no folder"),
        (["{here}"], "holds no submission"),
        (["{here}", "--exercises", "coalesced"], "coalesced"),
        (["{here}", "--seconds", "0"], "time limit"),
    ],
)
def test_arguments_that_cannot_be_used_are_named(tmp_path, capsys, arguments, words):
    asked = [one.replace("{here}", str(tmp_path)) for one in arguments]
    assert command.main(["grade", *asked]) == 2
    assert words in capsys.readouterr().err


def test_headers_of_kernels_are_let_through():
    assert (
        fence.refused('#include "ptx.cuh"\n#include <cuda_fp16.h>\n// #include "/etc/passwd"\n')
        is None
    )


def _grade_beside_a_thread(pipe, folder) -> None:
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    pipe.send([one.passed for one in grade(folder, ["coalesce"], mapped=map)])


def test_a_worker_of_dask_grades_a_daemon_with_threads(tmp_path):
    """What such a worker is: multiprocessing refuses it children, and a fork beside threads may stand for ever."""
    (tmp_path / "ann").mkdir()
    (tmp_path / "ann" / "coalesce.cu").write_text(RIGHT, encoding="utf-8")
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    worker = context.Process(target=_grade_beside_a_thread, args=(there, tmp_path), daemon=True)
    worker.start()
    there.close()
    assert here.recv() == [True]  # EOFError where the worker ended without a word
