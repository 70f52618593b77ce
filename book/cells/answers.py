"""What a chapter says to the reader's numbers: a prediction beside its result, an answer checked.

Both print plain text, the same on every machine.
"""

from collections.abc import Mapping

Number = int | float


def _text(value: Number | None) -> str:
    if value is None:
        return "-"
    if isinstance(value, int) or float(value).is_integer():
        return f"{int(value):,}"
    return f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def _verdict(said: Number | None, result: Number, within: float, places: bool = False) -> str:
    if said is None:
        return "no prediction yet"
    if abs(said - result) <= within * abs(result):
        return "right"
    if said > 0 and result > 0 and not places:
        ratio = max(said / result, result / said)
        return f"{_text(round(ratio, 1))}x too {'many' if said > result else 'few'}"
    return "not so"


def compare(
    predicted: Mapping[str, Number | None],
    result: Mapping[str, Number],
    within: float = 0.05,
    places: bool = False,
) -> None:
    """Prints each prediction beside its result; `within` is the relative error that is still right.

    places: the numbers are places, such as rows: one is right or wrong, never too many.

    KeyError when a prediction has no result: the two have the same names.
    """
    width = max(len(name) for name in predicted)
    print(f"{'':{width}}  {'you say':>12}  {'it is':>12}")
    for name, said in predicted.items():
        verdict = _verdict(said, result[name], 0 if places else within, places)
        print(f"{name:{width}}  {_text(said):>12}  {_text(result[name]):>12}  {verdict}")


def check(answer: Number | None, result: Number, within: float = 0.0) -> None:
    """Prints whether an answer is right, without giving the right one away."""
    if answer is None:
        print("No answer yet: put yours in place of None and run the cell again.")
        return
    right = abs(answer - result) <= within * abs(result)
    far = "large" if answer > result else "small"
    print(f"{_text(answer)} is right." if right else f"{_text(answer)} is too {far}: try again.")
