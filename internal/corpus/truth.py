"""Keeps the true values of a training beside what its framework prints.

A scenario calls `keep(name, x, value, form)` for each value at the moment when it is known, not when it is printed.
form is how the framework rounds it, so that the expectation has the digits that a reader can see.
"""
import json
import math
import os


class Truth:
    def __init__(self):
        self.series, self.more = {}, {}

    def keep(self, name, x, value, form=".6g", **more):
        """One value of a series. more goes into its expectation: aka, required, x_strict, count_min, count_max."""
        told = float(format(float(value), form).rstrip("%"))
        self.series.setdefault(name, []).append([x, told if math.isfinite(told) else str(told)])
        self.more.setdefault(name, {}).update(more)

    def document(self, file, family):
        series = []
        for name, points in self.series.items():
            s = {"metric": name, "raw": name, "aka": [], "x": "step", "x_strict": True, "required": True}
            s.update(self.more[name])
            s.update(count=len(points), points=points)
            if points:
                s.update(first=points[0], last=points[-1])
            series.append(s)
        return {"file": file, "family": family, "kind": "real-local", "series": series, "expect_no_metrics": not series}

    def write(self):
        with open(os.environ["CORPUS_TRUTH"], "w") as f:
            json.dump(self.document("", ""), f)


truth = Truth()
keep = truth.keep
