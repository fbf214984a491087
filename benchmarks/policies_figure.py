"""Draw the figure of docs/explanation/breakeven.md from the results of policies.py.

To redraw it: `python benchmarks/policies_figure.py out/benchmarks/policies.json docs/images/breakeven.png`.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

# Okabe and Ito's colors; our policies are violet, as in the reproduction.
LOOKS = {
    "Breakeven": ("#5E2CA5", "-", 2.2),
    "BreakevenRacing": ("#5E2CA5", "--", 1.6),
    "DBCARE": ("#0072B2", "-", 2.2),
    "Halving, T = 5K": ("#E69F00", "-.", 1.6),
    "Halving, T = 250K": ("#D55E00", "-.", 1.6),
    "racing, 0.1": ("#56B4E9", ":", 2.0),
    "racing, 0.01": ("#009E73", ":", 2.0),
    "Breakeven, sigma / 2": ("#000000", "--", 1.6),
    "Breakeven, sigma / 2, trusted": ("#D55E00", "-", 1.6),
    "Breakeven, sigma learned": ("#009E73", ":", 2.0),
}
CELLS = ("paper", "drug trial", "random")


def draw_shares(axes: Any, results: dict[str, Any], names: list[str], title: str) -> None:
    """Draw, for each policy, the share of cells whose ratio to DBCARE is at most x."""
    for name in names:
        values = np.sort([row[2] for group in CELLS for row in results["ratios"][group][name]])
        color, dashes, width = LOOKS[name]
        axes.step(
            values, np.arange(1, len(values) + 1) / len(values), label=name, color=color, ls=dashes, lw=width,
            where="post",
        )  # fmt: skip
    axes.axvline(1.0, color=LOOKS["DBCARE"][0], lw=1.0)
    axes.set_xscale("log")
    axes.set_xlim(0.08, 20.0)
    axes.set_xticks([0.1, 0.3, 1, 3, 10], ["0.1", "0.3", "1", "3", "10"])
    axes.minorticks_off()
    axes.set_title(title, fontsize=10)
    axes.set_xlabel("risk / DBCARE's risk")
    axes.set_ylabel("share of all cells")
    axes.legend(fontsize=8, frameon=False)
    axes.grid(alpha=0.25)


def draw(results: dict[str, Any], path: Path) -> Path:
    """Draw three panels: against DBCARE, with a doubtful sigma, and against the known-gap SPRT."""
    figure = Figure(figsize=(12.5, 4.0), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    rivals = ["Breakeven", "BreakevenRacing", "Halving, T = 5K", "Halving, T = 250K", "racing, 0.1", "racing, 0.01"]
    draw_shares(left, results, rivals, "All policies")
    draw_shares(
        middle,
        results,
        ["Breakeven", "Breakeven, sigma learned", "Breakeven, sigma / 2", "Breakeven, sigma / 2, trusted"],
        "Breakeven with sigma right, learned, halved",
    )
    for name in ("DBCARE", "BreakevenRacing", "Breakeven"):
        for loss, alpha in (("MI", 1.0), ("SR", 0.5)):
            curve = results["over SPRT"][f"{name}, {loss}"]
            color, dashes, width = LOOKS[name]
            right.plot(
                [float(gap) for gap in curve], list(curve.values()), label=f"{name}, {loss}", color=color, ls=dashes,
                lw=width, alpha=alpha,
            )  # fmt: skip
    right.set_xscale("log")
    right.set_yscale("log")
    right.set_yticks([1, 2, 4, 8], ["1", "2", "4", "8"])
    right.set_xticks([0.05, 0.2, 1, 2], ["0.05", "0.2", "1", "2"])
    right.minorticks_off()
    right.set_title("Two arms, c = 1e-4", fontsize=10)
    right.set_xlabel("gap")
    right.set_ylabel("risk / risk of the known-gap SPRT")
    right.set_ylim(0.9, 30.0)
    right.legend(fontsize=8, frameon=False, loc="upper center", ncols=2)
    right.grid(alpha=0.25)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    return path


if __name__ == "__main__":
    print(draw(json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])))
