"""Questions: what the data says, what Python says, and what the page's script says are one."""

import ast
import base64
import json
import re
import shutil
from pathlib import Path

import pytest

from book.cells import answers, questions
from tests import limited

SCRIPT = Path(questions.__file__).with_name("js") / "questions.js"
DATA = """
[sectors]
ask = "How many sectors does a request for `B` touch?"
label = "naive: B"
unit = "sectors"
answer = 32
wrong = { 4 = "That is the *other* kernel.", "1,024" = "That is all of them: [why](x.html)" }
why = "Each lane needs its own."

[row]
ask = "Which row?"
answer = 5
places = true

[side]
ask = "Which operand is reused?"
answer = "A"
choices = ["A", "B"]
wrong = { B = "Follow one row." }

[third]
answer = 0.33
within = 0.02

[l2]
ask = "How busy is L2?"
from = 'limits("mma_padded", "L2")'
digits = 2
"""


@pytest.fixture
def asked(tmp_path, monkeypatch):
    (tmp_path / "one.toml").write_text(DATA)
    monkeypatch.setattr(questions, "FOLDER", tmp_path)
    questions.everything.cache_clear()
    yield questions.everything()
    questions.everything.cache_clear()


def test_questions_are_read(asked):
    assert list(asked) == ["sectors", "row", "side", "third", "l2"]
    assert asked["sectors"].answer_text == "32 sectors"
    assert 0 < asked["l2"].answer < 1 and asked["l2"].recorded


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[a]\nanswer = 1\nanswr = 2", "no key answr"),
        ("[a]\nask = 'x'", "give `answer`, or `from`"),
        ("[a]\nanswer = 1\nfrom = 'ms(\"naive\")'", "give `answer`, or `from`"),
        ("[a]\nanswer = 'C'\nchoices = ['A', 'B']", "not among the choices"),
        ("[a]\nanswer = 'C'", "needs `choices`"),
        ("[a]\nanswer = 3\nwrong = { many = 'x' }", "nobody can answer 'many'"),
        ("[a]\nanswer = 3\nwrong = { 3 = 'x' }", "explained as wrong, and is right"),
    ],
)
def test_mistakes_in_the_data_are_named(text, says, tmp_path):
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=says):
        questions.read(path)


def test_two_questions_may_not_have_one_name(asked, tmp_path):
    (tmp_path / "two.toml").write_text("[row]\nanswer = 1")
    questions.everything.cache_clear()
    with pytest.raises(ValueError, match=r"two\.toml.*'row'"):
        questions.everything()


def test_an_unknown_question_is_named_with_what_is_like_it(asked):
    with pytest.raises(KeyError, match="sectors"):
        answers.predict("sector")


@pytest.mark.parametrize("mode", [answers.predict, answers.check])
def test_the_answer_is_not_to_be_read_before_it_is_asked_for(mode, asked):
    shown = mode("sectors")
    assert "32" not in shown.plain() and "Each lane" not in shown.plain()
    before = shown.html().split('<div class="gl-q"')[1].split("<noscript>")[0]
    assert ">32" not in before and "Each lane" not in before
    sealed = shown.html().split('data-sealed="')[1].split('"')[0]
    assert "32" not in sealed and "lane" not in sealed
    assert json.loads(base64.b64decode(sealed))["answer"] == 32


def test_without_a_script_the_answer_is_folded(asked):
    folded = answers.predict("sectors").html().split("<noscript>")[1].split("</noscript>")[0]
    assert folded.startswith("<details><summary>") and "32 sectors" in folded


def test_a_prediction_needs_a_question(asked):
    with pytest.raises(ValueError, match="third"):
        answers.predict("third")


def test_what_was_counted_stands_beside_what_was_said(asked):
    shown = answers.compare({"sectors": 32, "third": 1 / 3, "l2": 0.5})
    assert shown.plain().splitlines()[0].split() == ["naive:", "B", "32"]
    assert (
        'data-said="sectors"' in shown.html() and "<summary>Show me</summary>0.333<" in shown.html()
    )


@pytest.mark.parametrize("counted", [{"sectors": 31}, {"third": 0.34}, {"side": "B"}])
def test_a_stored_answer_that_is_not_what_was_counted_is_an_error(counted, asked):
    with pytest.raises(ValueError, match="mend the latter"):
        answers.compare(counted)


def test_what_is_recorded_has_nothing_to_settle(asked):
    with pytest.raises(ValueError, match="recorded"):
        answers.settle("l2", 0.5)


def _explained(question, said) -> str:
    """What is known of a typical wrong answer."""
    words = {
        key if question.choices else float(key.replace(",", "")): key for key in question.wrong
    }
    return question.wrong[words[said]] if said in words else ""


@pytest.mark.skipif(shutil.which("node") is None, reason="running the script needs Node.js")
def test_the_page_judges_as_python_does(asked):
    said = [32, 33, 31, 4, 1024, 5, 6, -1, 0, 0.33, 0.334, 0.34, 0.3, 100, 0.85, "A", "B"]
    cases, wanted = [], []
    for question in asked.values():
        for mode in (questions.REVEALS, questions.TESTS):
            for one in said:
                if isinstance(one, str) != bool(question.choices):
                    continue
                cases.append([str(one), question.sealed(mode)])
                words = questions.markup(_explained(question, one))
                right = questions.is_right(question, one, mode)
                wanted.append([right, "" if right else words])
    run = _node(
        "const open = (s) => JSON.parse(Buffer.from(s, 'base64').toString());"
        f"const all = {json.dumps(cases)}.map(([said, s]) => questions.judge(said, open(s)));"
        "console.log(JSON.stringify(all.map((found) => [found.right, found.words])));"
    )
    assert run == wanted
    assert sum(right for right, _ in wanted) > 5


@pytest.mark.skipif(shutil.which("node") is None, reason="running the script needs Node.js")
def test_numbers_are_read_as_people_write_them():
    written = ["1,024", " 12.5% ", "1/4", "2^10", "64k", "2x", "-3", "1e3", "0x10", "", "a", "1/b"]
    got = _node(f"console.log(JSON.stringify({json.dumps(written)}.map(questions.number)))")
    assert got == [1024, 0.125, 0.25, 1024, 64000, 2, -3, 1000, None, None, None, None]
    far = _node("console.log(JSON.stringify([questions.off(4, 32), questions.off(8, 4)]))")
    assert far == ["8x too few", "2x too many"]

    units = _node(
        "console.log(JSON.stringify([questions.unit('sectors per request', 1), questions.unit('sectors', 2)]))"
    )
    assert units == ["sector per request", "sectors"]
    assert units == [questions.unit("sectors per request", 1), questions.unit("sectors", 2)]


def _node(code: str):
    text = SCRIPT.read_text(encoding="utf-8") + code
    run = limited.run(["node", "-e", text])
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


# --- the book's own questions


def _html(output) -> str:
    return "".join(output.get("data", {}).get("text/html", ""))


def _called(notebook) -> dict[str, list[str]]:
    """Names of questions that this notebook's cells pass to each function of `answers`."""
    found: dict[str, list[str]] = {"predict": [], "check": [], "compare": [], "settle": []}
    for cell in notebook.cells:
        if cell.cell_type != "code" or "answers." not in cell.source:
            continue
        for output in cell.outputs:  # a comparison's names may be computed
            found["compare"] += re.findall(r'data-said="([^"]+)"', _html(output))
        lines = [line for line in cell.source.splitlines() if line.lstrip()[:1] not in "!%"]
        for node in ast.walk(ast.parse("\n".join(lines))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            if getattr(node.func.value, "id", "") != "answers" or not node.args:
                continue
            given = node.args[0].keys if isinstance(node.args[0], ast.Dict) else node.args
            words = [one.value for one in given if isinstance(one, ast.Constant)]
            if len(node.args) == 1 or node.func.attr in ("predict", "settle"):
                found[node.func.attr] += [word for word in words if isinstance(word, str)]
    return found


def test_every_question_is_asked_once_and_settled_by_a_count(notebooks):
    known = questions.everything()
    asked, settled = [], set()
    for notebook in notebooks.values():
        called = _called(notebook)
        asked += called["predict"] + called["check"]
        settled |= {*called["compare"], *called["settle"]}
    assert sorted(set(asked)) == sorted(known), "book/answers/ and the chapters differ"
    assert len(asked) == len(set(asked)), "a question is asked twice"
    unsettled = [name for name in known if name not in settled and not known[name].recorded]
    assert not unsettled, f"no cell counts the answers to {unsettled}: answers.settle(name, count)"
