"""Which CUDA headers a compile reads: those of its compiler's major version, or none."""

import pytest

from kernels import headers


@pytest.fixture
def places(tmp_path, monkeypatch):
    """Makes folders with every needed header of the CUDA versions given, the only ones there are."""

    def make(*versions: int) -> list:
        folders = []
        for version in versions:
            folder = tmp_path / str(version)
            for name in headers.NEEDED:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).touch()
            (folder / "cuda_runtime_api.h").write_text(f"#define CUDART_VERSION {version}\n")
            folders.append((folder,))
        monkeypatch.setattr(headers, "_wheels", lambda: folders)
        monkeypatch.setattr(headers, "_toolkits", list)
        headers.include_folders.cache_clear()
        return folders

    yield make
    headers.include_folders.cache_clear()


def test_the_nearest_minor_version_is_taken_of_wheels_and_toolkits(places, monkeypatch):
    thirteen, near, _, later = places(13000, 12080, 12020, 13050)
    monkeypatch.setattr(headers, "_wheels", lambda: [near])
    monkeypatch.setattr(headers, "_toolkits", lambda: [thirteen, later])
    for asked, expected in (((12, 9), near), ((13, 0), thirteen), ((13, 4), later)):
        assert headers.include_folders(asked) == expected


def test_where_there_are_none_it_says_what_to_install(places):
    places()
    with pytest.raises(FileNotFoundError, match="pip install nvidia-cuda-runtime nvidia-cuda-cccl"):
        headers.include_folders((13, 0))


def test_headers_of_another_major_version_are_refused_by_name(places):
    places(13050)
    with pytest.raises(
        FileNotFoundError, match=r"no CUDA 12 headers.*nvidia-cuda-cccl-cu12.*CUDA 13\.5"
    ):
        headers.include_folders((12, 8))


def test_headers_without_cccl_are_not_enough(places):
    ((folder,),) = places(12080)
    (folder / "cuda" / "pipeline").unlink()
    headers.include_folders.cache_clear()
    with pytest.raises(FileNotFoundError, match="nvidia-cuda-cccl-cu12"):
        headers.include_folders((12, 8))
