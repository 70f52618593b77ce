"""`python -m book.exercises grade FOLDER`: a course's submissions, without a GPU. `yield`: what each finder adds."""

import argparse
import sys
from pathlib import Path


def main(arguments: list[str] | None = None) -> int:
    """0 when it is done, 2 for arguments that cannot be used."""
    from .finders_yield import HELD_OUT, measure
    from .grading.grade import SECONDS, grade
    from .grading.reports import FORMATS, totals, written

    parser = argparse.ArgumentParser(prog="python -m book.exercises")
    parts = parser.add_subparsers(dest="part", required=True)
    asked = parts.add_parser("grade", help="judge a folder of submissions")
    asked.add_argument("folder", type=Path, help="a folder or a file for each student")
    asked.add_argument("--out", type=Path, help="write the report to this file")
    asked.add_argument("--format", choices=FORMATS, default="json", help="of the report (json)")
    asked.add_argument("--exercises", help="names, separated by commas; all of them unless given")
    asked.add_argument(
        "--seed", type=int, default=0, help="of the course; each student gets inputs of their own"
    )
    asked.add_argument(
        "--seconds", type=float, default=SECONDS, help="of the processor, for an answer (20)"
    )
    asked.add_argument("--jobs", type=int, help="processes; one for each core unless given")
    asked.add_argument("--single", metavar="STUDENT", help="the folder is this student's")
    asked.add_argument("--assignment", default="gemm-ladder", help="what the report calls it")
    asked.add_argument("--dask", metavar="ADDRESS", help="a scheduler of Dask that does the work")
    yields = parts.add_parser(
        "yield", help="what each finder names, and costs, on held-out answers"
    )
    yields.add_argument("file", nargs="?", type=Path, default=HELD_OUT)
    options = parser.parse_args(arguments)
    if options.part == "yield":
        measure(options.file)
        return 0
    names = options.exercises.split(",") if options.exercises else None
    try:
        mapped = _dask(options.dask) if options.dask else None
        found = grade(
            options.folder,
            names,
            options.seed,
            options.seconds,
            options.jobs,
            options.single,
            mapped,
        )
        report = written(found, options.format, options.assignment)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    if options.out:
        options.out.write_text(report, encoding="utf-8")
    else:
        print(report)
    for student, points, total in totals(found):
        print(f"{student}: {points} of {total}", file=sys.stderr)
    return 0


def _dask(address: str):
    try:
        from dask.distributed import Client
    except ImportError:
        raise ValueError("--dask needs the package distributed: pip install distributed") from None
    client = Client(address)
    return lambda function, work: client.gather(client.map(function, work))


if __name__ == "__main__":
    sys.exit(main())
