"""What Colab's driver says of its T4 (CUDA 12.8; the properties of deviceQuery)."""


def getDeviceCount():
    return 1


def getDevice():
    return 0


def getDeviceProperties(index):
    return {
        "name": b"Tesla T4",
        "major": 7,
        "minor": 5,
        "multiProcessorCount": 40,
        "l2CacheSize": 4 << 20,
        "totalGlobalMem": 15828320256,
        "clockRate": 1590000,
        "sharedMemPerBlockOptin": 64 << 10,
    }


def driverGetVersion():
    return 12080


def runtimeGetVersion():
    return 12080


def memGetInfo():
    """So little that only products that the emulator has made are compared: of others there is but the time."""
    return 5 << 20, 15828320256
