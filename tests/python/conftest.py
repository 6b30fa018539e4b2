import pytest
import weir

PLATFORMS = {
    "host": "host:cores=2",
    "device": "sim:cores=2,gbps=50",
    "virtual": "sim:cores=1,clock=virtual,gbps=6",
    "both": "host:cores=1,sim:cores=1",
}


@pytest.fixture(params=["host", "device", "virtual"])
def runtime(request):
    with weir.Runtime(PLATFORMS[request.param]) as made:
        yield made


@pytest.fixture
def stream(runtime):
    return runtime.domain().place(1).stream()


@pytest.fixture
def card():
    """A runtime with a memory of its own, for what the host would hide."""
    with weir.Runtime(PLATFORMS["device"]) as made:
        yield made
