"""From replayed figures and real losses to the page: how well each figure orders policies, and which prompts break."""

import math
from collections.abc import Callable

import numpy as np

BLOCK, DRAWS, SEED = 16, 2000, 1
# Cells of each model from which on the page says something.
ENOUGH = 6
# Figures that are known, and whether more of one means more loss.
WORSE = {
    "predicted_loss": 1,
    "layer_error": 1,
    "output_error": 1,
    "peak_miss_rate": 1,
    "broken_row_rate": 1,
    "retained_mass": -1,
    "retained_mass_full": -1,
    "heavy_recall": -1,
    "pivotal_hit_rate": -1,
}


def number(line: dict[str, str], figure: str) -> float:
    """A figure as a number of which more means worse; NaN where there is none."""
    text = line.get(figure) or ""
    return WORSE[figure] * float(text) if text else math.nan


def differ(one: list[float], other: list[float]) -> bool:
    """Whether two losses of the same rows truly differ: |z| > 2 over blocks of 16 rows."""
    difference = np.subtract(one, other)
    blocks = np.array([difference[i : i + BLOCK].mean() for i in range(0, len(difference), BLOCK)])
    error = blocks.std(ddof=1) / math.sqrt(len(blocks)) if len(blocks) > 1 else math.inf
    return abs(blocks.mean()) > 2 * error


def pairs(cells: list[dict]) -> list[tuple[int, int, int, bool]]:
    """Cell and two policies of every pair that truly differs, and whether the first one loses more."""
    found = []
    for at, cell in enumerate(cells):
        for i in range(len(cell["kl"])):
            for j in range(i):
                if differ(cell["kl"][i], cell["kl"][j]):
                    found.append((at, i, j, np.mean(cell["kl"][i]) > np.mean(cell["kl"][j])))
    return found


def verdicts(cells: list[dict], differing: list, figure: str) -> np.ndarray:
    """For each differing pair 1 where the figure orders it rightly, 0.5 where it ties, NaN where it says nothing."""

    def verdict(at: int, i: int, j: int, first_worse: bool) -> float:
        one, other = (number(cells[at]["figures"][k], figure) for k in (i, j))
        if math.isnan(one) or math.isnan(other):
            return math.nan
        return 0.5 if one == other else float((one > other) == first_worse)

    return np.array([verdict(*pair) for pair in differing])


def share(cells: list[dict], differing: list, figure: str) -> tuple[float, float, float]:
    """The share of differing pairs ordered rightly, and a 95 % interval: policies are drawn anew, for all cells alike."""
    right = verdicts(cells, differing, figure)
    known = ~np.isnan(right)
    policies = len(cells[0]["policies"]) if cells else 0
    i, j = (np.array([pair[k] for pair in differing], dtype=int) for k in (1, 2))

    def of_draw(counts: np.ndarray) -> float:
        weights = (counts[i] * counts[j])[known]
        return float((right[known] * weights).sum() / weights.sum()) if weights.sum() else math.nan

    return interval(of_draw, policies, of_draw(np.ones(policies, dtype=int)))


def interval(of_draw: Callable[[np.ndarray], float], items: int, value: float) -> tuple[float, float, float]:
    """A value with the 95 % interval of its bootstrap, which draws items with replacement."""
    draw = np.random.default_rng(SEED)
    found = [of_draw(np.bincount(draw.integers(0, items, items), minlength=items)) for _ in range(DRAWS)]
    known = [one for one in found if not math.isnan(one)]
    low, high = np.quantile(known, [0.025, 0.975]) if known else (math.nan, math.nan)
    return value, float(low), float(high)


def rank_correlation(cells: list[dict], figure: str) -> float:
    """Spearman's, between a figure and the loss over the policies of a cell, mean over cells."""

    def of_cell(cell: dict) -> float:
        told = [number(line, figure) for line in cell["figures"]]
        if any(map(math.isnan, told)):
            return math.nan
        one, other = (ranks(values) for values in (told, [float(np.mean(kl)) for kl in cell["kl"]]))
        return float(np.corrcoef(one, other)[0, 1]) if np.std(one) and np.std(other) else math.nan

    found = [value for value in map(of_cell, cells) if not math.isnan(value)]
    return float(np.mean(found)) if found else math.nan


def ranks(values: list[float]) -> np.ndarray:
    """Ranks from 0, ties at their mean."""
    array = np.array(values)
    return np.array([(array < value).sum() + ((array == value).sum() - 1) / 2 for value in array])


def auc(needles: list[dict], figure: str) -> tuple[float, float, float]:
    """How well a figure tells prompts that break from those that hold, within a policy and budget; prompts drawn anew."""
    groups: dict[tuple, list[tuple[float, bool]]] = {}
    for needle in needles:
        value = number(needle["figures"], figure)
        if needle["knew"] and not math.isnan(value):
            groups.setdefault((needle["policy"], needle["share"]), []).append((value, needle["broke"]))
    tables = [won(group) for group in groups.values()]
    longest = max((len(table) for table in tables), default=0)

    def of_draw(counts: np.ndarray) -> float:
        right = total = 0.0
        for table in tables:
            weights = np.outer(counts[: len(table)], counts[: len(table)])
            known = ~np.isnan(table)
            right += (table[known] * weights[known]).sum()
            total += weights[known].sum()
        return right / total if total else math.nan

    return interval(of_draw, longest, of_draw(np.ones(longest, dtype=int))) if longest else (math.nan,) * 3


def won(group: list[tuple[float, bool]]) -> np.ndarray:
    """For each prompt that broke (row) and each that held (column) 1 where the figure is worse for the first."""
    values, broke = np.array([value for value, _ in group]), np.array([broken for _, broken in group])
    table = (values[:, None] > values[None]) + 0.5 * (values[:, None] == values[None])
    return np.where(broke[:, None] & ~broke[None], table, math.nan)


# ------------------------------------------------------------------------------------------ page


def page(found: dict[str, dict[str, list[dict]]], size) -> str:
    """The whole page."""
    parts = [INTRODUCTION, run_text(found, size)]
    for name, kinds in found.items():
        if kinds["cells"]:
            parts.append(orders(name, kinds["cells"]))
        if kinds["needles"]:
            parts.append(breaks(name, kinds["needles"]))
    parts += [losses(name, kinds["cells"]) for name, kinds in found.items() if kinds["cells"]]
    return "\n\n".join([*parts, LIMITS]) + "\n"


def figures_of(lines: list[dict[str, str]]) -> list[str]:
    """The known figures that these lines have."""
    return [figure for figure in WORSE if any(line.get(figure) for line in lines)]


def orders(name: str, cells: list[dict]) -> str:
    """How well each figure orders policies."""
    differing = pairs(cells)
    rows = []
    for figure in figures_of([line for cell in cells for line in cell["figures"]]):
        value, low, high = share(cells, differing, figure)
        rows.append((value, [f"`{figure}`", f"{value:.3f}", f"{low:.2f} to {high:.2f}", text(rank_correlation(cells, figure), 2)]))
    rows.sort(key=lambda row: -row[0])
    total = sum(len(cell["kl"]) * (len(cell["kl"]) - 1) // 2 for cell in cells)
    head = f"## {name}: which policy loses more\n\n{len(differing)} of {total} pairs of policies truly differ.\n\n"
    return head + table(["figure", "right", "95 %", "rank correlation"], [row for _, row in rows])


def breaks(name: str, needles: list[dict]) -> str:
    """How well each figure tells which prompts break."""
    knew = [needle for needle in needles if needle["knew"]]
    rows = []
    for figure in figures_of([needle["figures"] for needle in knew]):
        value, low, high = auc(knew, figure)
        rows.append((value, [f"`{figure}`", text(value, 2), f"{text(low, 2)} to {text(high, 2)}"]))
    rows.sort(key=lambda row: -row[0] if not math.isnan(row[0]) else 1)
    broke = sum(needle["broke"] for needle in knew)
    head = (
        f"## {name}: which prompts break\n\nOf {len(needles)} runs of needle prompts the full cache knew the answer in "
        f"{len(knew)}; {broke} of these broke.\n\n"
    )
    return head + table(["figure", "AUC", "95 %"], [row for _, row in rows])


def losses(name: str, cells: list[dict]) -> str:
    """The real loss of each policy, beside what was replayed."""
    known = figures_of([line for cell in cells for line in cell["figures"]])
    rows = []
    for cell in cells:
        for policy, kl, line in zip(cell["policies"], cell["kl"], cell["figures"], strict=True):
            shown = [f"{float(line[figure]):.4f}" if line.get(figure) else "" for figure in known]
            rows.append([cell["text"], str(cell["budget"]), policy, f"{np.mean(kl):.4f}", *shown])
    return f"## {name}: everything\n\n" + table(["text", "budget", "policy", "KL", *known], rows)


def table(header: list[str], rows: list[list[str]]) -> str:
    """A markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def text(value: float, digits: int) -> str:
    """A number, or a dash where there is none."""
    return "-" if math.isnan(value) else f"{value:.{digits}f}"


def run_text(found: dict[str, dict[str, list[dict]]], size) -> str:
    """What was run, and what is missing."""
    lines = []
    for name, kinds in found.items():
        cells, needles = len(kinds["cells"]), len(kinds["needles"])
        all_cells = len(size.texts) * len(size.budgets)
        all_needles = size.needles * len(size.needle_policies) * len(size.needle_shares)
        lines.append(f"- {name}: {cells} of {all_cells} cells (a text at a budget), {needles} of {all_needles} needle runs.")
    if len(found) < 2 or any(len(kinds["cells"]) < ENOUGH for kinds in found.values()):
        lines.append(
            "- **This is an example of the page and no evidence**: figures that are to be believed are chosen on one model and "
            f"reported on another, over {ENOUGH} cells or more of each. An interval of a single cell is far too narrow."
        )
    budgets = ", ".join(map(str, size.budgets))
    shares = ", ".join(f"{100 * share:g} %" for share in size.needle_shares)
    return (
        "## What was run\n\n"
        + "\n".join(lines)
        + f"\n\nTexts: {', '.join(size.texts)}, {size.tokens} tokens each. Policies: {', '.join(size.policies)}; budgets {budgets}; "
        + f"a recent window of 16, or a third of the budget; 4 sinks. Needles: {size.needles} prompts under "
        + f"{', '.join(size.needle_policies)} at {shares} of their length."
    )


INTRODUCTION = """# Which replayed figure tells the real loss

Written by `python traces/validity.py`, which makes everything it needs and goes on where it was stopped. The real loss is the
KL divergence of the next-token distribution from the full cache's, in the closed loop: the policy decides on what the evicted
model really attends to (docs/decisions.md). Figures are replayed from one recording with the full cache.

- **right**: of the pairs of policies at one budget and text whose losses truly differ (paired difference over blocks of 16
  tokens, |z| > 2), the share that the figure orders as the loss does; a coin has 0.5, a tie counts half.
- **rank correlation**: between figure and loss over the policies of a cell, mean over cells.
- **AUC**: of a needle prompt that broke (the full cache gave every token of the hidden number more than half, the evicted one
  does not) and one that held, under the same policy and budget, how often the figure is worse for the first.
- Intervals are 95 %, from 2,000 resamples: of the policies, for all cells alike; of the prompts."""

LIMITS = """## What this does not tell

Small models in few bits, short texts, eviction from the first token on. Pairs share policies and texts, so that they are not
independent. No figure of a replay sees what eviction does to what is read afterwards. Differences of a few hundredths between
figures mean nothing at this size; the interval says how little."""
