"""Shows what `weir run cholesky --verify --json` found: demo_result.py RESULT.json"""

import json
import sys


def speed_of(result):
    rate, peak = result["rate"], result["gemm_peak"]
    words = f"{rate['value']:.1f} {rate['unit']}"
    if peak["share"] is None:
        return f"{words}; {peak['problem']}"
    return (f"{words}, {peak['share']:.0%} of the gemm peak of this machine "
            f"({peak['value']:.1f} {peak['unit']})")


def lines_of(result):
    error = result["error"]
    yield f"cholesky: {result['seconds']['median']:.3f} s, {speed_of(result)}"
    streams = "1 stream" if result["streams"] == 1 else f"{result['streams']} streams"
    yield (f"          {result['actions']} actions in {streams}, "
           f"{'verified' if result['verified'] else 'NOT VERIFIED'}: "
           f"{error['metric']} {error['value']:.2g}, limit {error['limit']:.2g}")


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        print("\n".join(lines_of(json.load(file))))
