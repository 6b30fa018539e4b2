"""Pipelines with a stage on a simulated device, beside the same stages in chunks, in virtual time."""

from harness.command import Command, Figure
from harness.row import Row, ratio_at_least

# What a core of an AMD EPYC takes for the stages on the host, divided by 16 cores.
HOST = "host:clock=virtual,cores=16,gflops=16,"
DEVICES = {
    "6 GB/s, 100 GFLOP/s": HOST + "sim:cores=1,gbps=6,gflops=100,clock=virtual",
    "16 GB/s, 8 TFLOP/s": HOST + "sim:cores=1,gbps=16,gflops=8000,clock=virtual",
    "k40x": HOST + "sim:k40x",
    "gtx-1080": HOST + "sim:gtx-1080",
    "v100": HOST + "sim:v100",
    "h100-pcie": HOST + "sim:h100-pcie",
    "h100-sxm": HOST + "sim:h100-sxm",
    "phi-31sp": HOST + "sim:phi-31sp",
}
APPLICATIONS = {
    "reyes": (),
    "raster": ("--pictures", 20),
    "evolution": ("--generations", 4),
    "gene-alignment": (),
    "face-detection": (),
    "stencil": (),
}
# What makes each application as fast as it can be without a pipeline, on all of the devices.
IN_CHUNKS = ("in chunks", "--baseline")
BASELINES = {
    "gene-alignment": ("in one chunk", "--baseline", "--chunk", 65536),
    "stencil": ("the whole matrix", "--lazy", "off"),
}
TARGETS = {("reyes", "16 GB/s, 8 TFLOP/s"): 1.3}
REPEAT = 3  # the first run, which allocates memory of the device, does not count


def groups(quick):
    """Rows that are measured together."""
    return [[row(application, device) for device in DEVICES] for application in APPLICATIONS]


def run(application, device, *options):
    words = ("run", application, *APPLICATIONS[application], "--domains", DEVICES[device],
             "--repeat", REPEAT, "--json", *options)
    return Figure(Command.of("weir", *words, once=True), "seconds.median")


def row(application, device):
    target = TARGETS.get((application, device), 1.0)
    peer, *options = BASELINES.get(application, IN_CHUNKS)
    return Row(f"{application}, {device}", "s", run(application, device),
               run(application, device, *options), peer, ratio_at_least(target))
