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


def test_the_nearest_minor_version_is_taken(places):
    _, near, _ = places(13000, 12080, 12020)
    assert headers.include_folders((12, 9)) == near


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
