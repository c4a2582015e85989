"""Scenarios of what breeds: generations, swarms, populations of networks."""
import os
import tempfile

from scenario import scenario
from search import bowl
from truth import keep


@scenario("gplearn")
def gplearn_symbolic():
    import numpy as np
    from gplearn.genetic import SymbolicRegressor
    x = np.random.default_rng(0).uniform(-1, 1, (80, 2)); y = x[:, 0] ** 2 - x[:, 1] + .5
    m = SymbolicRegressor(population_size=120, generations=8, stopping_criteria=0, max_samples=.9, verbose=1, random_state=0).fit(x, y)
    d = m.run_details_
    for i in range(len(d["generation"])):
        keep("fitness", i, d["average_fitness"][i], "g", aka=["average_fitness", "population_average/fitness"])
        keep("best individual/fitness", i, d["best_fitness"][i], "g", aka=["best_individual/fitness"], required=False)
        keep("oob fitness", i, d["best_oob_fitness"][i], "g", aka=["oob_fitness", "best_individual/oob_fitness"])
        keep("length", i, d["average_length"][i], ".2f", aka=["population_average/length"], required=False)


@scenario("pymoo")
def pymoo_genetic():
    import numpy as np
    from pymoo.algorithms.soo.nonconvex.ga import GA
    from pymoo.core.callback import Callback
    from pymoo.core.problem import ElementwiseProblem
    from pymoo.optimize import minimize
    class Bowl(ElementwiseProblem):
        def __init__(self): super().__init__(n_var=2, n_obj=1, xl=np.array([-3., -3.]), xu=np.array([3., 3.]))
        def _evaluate(self, x, out, *a, **how): out["F"] = bowl(*x)
    class Told(Callback):
        def notify(self, a):
            f = a.pop.get("F")
            keep("f_avg", a.n_gen, f.mean(), ".17g"); keep("f_min", a.n_gen, a.opt.get("F").min(), ".17g")
    # What it prints it rounds to ten digits, in a form that hangs on the width.
    minimize(Bowl(), GA(pop_size=20), ("n_gen", 12), seed=1, verbose=True, callback=Told())


@scenario("pyswarms")
def pyswarms_global():
    import numpy as np
    import pyswarms as ps
    o = ps.single.GlobalBestPSO(n_particles=10, dimensions=2, options={"c1": .5, "c2": .3, "w": .9})
    np.random.seed(0)
    o.optimize(lambda p: np.array([bowl(*q) for q in p]), iters=30)
    for i, v in enumerate(o.cost_history):
        keep("best_cost", i + 1, v, ".3g", x_strict=False, count_min=1, count_max=30, required=False)


@scenario("neat-python")
def neat_xor():
    import neat
    import neat.config
    here = os.path.join(os.path.dirname(neat.__file__))
    cases = [((0., 0.), 0.), ((0., 1.), 1.), ((1., 0.), 1.), ((1., 1.), 0.)]
    class Told(neat.reporting.BaseReporter):
        def start_generation(self, generation): self.at = generation
        def post_evaluate(self, config, population, species, best):
            f = [g.fitness for g in population.values()]
            keep("population's average fitness", self.at, neat.math_util.mean(f), ".5f", aka=["average fitness", "average_fitness", "fitness", "train/fitness"])
            keep("stdev", self.at, neat.math_util.stdev(f), ".5f", required=False)
            keep("best fitness", self.at, best.fitness, ".5f", aka=["best_fitness"], required=False)
        def end_generation(self, config, population, species):
            keep("adjusted fitness", self.at, means[-1], ".3f", aka=["train/adjusted_fitness"], required=False)
    mean, means = neat.reproduction.mean, []
    neat.reproduction.mean = lambda values: means.append(mean(values)) or means[-1] # the last of a generation is that of its species
    def score(genomes, config):
        for _, g in genomes:
            n = neat.nn.FeedForwardNetwork.create(g, config)
            g.fitness = 4. - sum((n.activate(a)[0] - b) ** 2 for a, b in cases)
    with tempfile.TemporaryDirectory() as d:
        open(os.path.join(d, "config"), "w").write(NEAT)
        c = neat.Config(neat.DefaultGenome, neat.DefaultReproduction, neat.DefaultSpeciesSet, neat.DefaultStagnation, os.path.join(d, "config"))
        p = neat.Population(c, seed=0); p.add_reporter(neat.StdOutReporter(True)); p.add_reporter(Told()); p.run(score, 8)


NEAT = open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "neat.ini")).read()


@scenario("hyperopt")
def hyperopt_tpe():
    import numpy as np
    from hyperopt import Trials, fmin, hp, tpe
    t = Trials()
    fmin(lambda s: bowl(s["a"], s["b"]), {"a": hp.uniform("a", -3, 3), "b": hp.uniform("b", -3, 3)}, algo=tpe.suggest, max_evals=15, trials=t, rstate=np.random.default_rng(0))
    best = float("inf")
    for i, v in enumerate(t.losses()):
        best = min(best, v)
        keep("best loss", i + 1, best, ".17g", aka=["best_loss", "loss"], count_min=1, count_max=15, x_strict=False, required=False)


@scenario("evotorch", "torch")
def evotorch_snes():
    import torch
    from evotorch import Problem
    from evotorch.algorithms import SNES
    from evotorch.logging import StdOutLogger
    torch.manual_seed(0)
    p = Problem("min", lambda x: (x[:, 0] - 1) ** 2 + 2 * (x[:, 1] + .5) ** 2 + .1, solution_length=2, initial_bounds=(-3, 3), vectorized=True, seed=0)
    s = SNES(p, stdev_init=2., popsize=20)
    StdOutLogger(s)
    def told():
        status = dict(s.status.items())
        for k in ("mean_eval", "pop_best_eval", "median_eval", "best_eval", "worst_eval"):
            keep(k, status["iter"], status[k], ".17g", required=k == "mean_eval")
    s.after_step_hook.append(lambda: told() or {})
    s.run(10)
