"""Scenarios of what searches: hyperparameters, programs, the minimum of a function."""
from scenario import blobs, scenario
from truth import keep


def bowl(a, b):
    return (a - 1) ** 2 + 2 * (b + .5) ** 2 + .1


@scenario("optuna")
def optuna_study():
    import optuna
    s = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    s.optimize(lambda t: bowl(t.suggest_float("a", -3, 3), t.suggest_float("b", -3, 3)), n_trials=12)
    for t in s.trials:
        keep("value", t.number, t.value, ".17g")


def cut(v):
    """A number as bayesian-optimization prints it: it is not rounded, but cut to nine signs."""
    return float(str(v)[:9])


@scenario("bayesian-optimization")
def bayesian_optimization():
    from bayes_opt import BayesianOptimization
    o = BayesianOptimization(lambda a, b: -bowl(a, b), {"a": (-3, 3), "b": (-3, 3)}, random_state=0, verbose=2)
    o.maximize(init_points=3, n_iter=6)
    for i, r in enumerate(o.res):
        keep("target", i + 1, cut(r["target"]), ".17g")
        for k in "ab":
            keep(k, i + 1, cut(r["params"][k]), ".17g", required=False)


@scenario("scikit-optimize")
def skopt_minimize():
    from skopt import gp_minimize
    r = gp_minimize(lambda p: float(bowl(*p)), [(-3., 3.), (-3., 3.)], n_calls=12, n_initial_points=8, random_state=0, verbose=True)
    best = float("inf")
    for i, v in enumerate(r.func_vals):
        best = min(best, v)
        keep("function value obtained", i + 1, v, ".4f", aka=["function_value_obtained", "value"])
        keep("current minimum", i + 1, best, ".4f", required=False)


@scenario("cma")
def cma_es():
    import cma
    es = cma.CMAEvolutionStrategy([2., 2.], .5, {"seed": 1, "verb_disp": 0, "verb_log": 0, "maxiter": 12})
    while not es.stop():
        found = es.ask()
        es.tell(found, [bowl(*p) for p in found])
        es.disp(1)
        keep("function value", es.countiter, es.fit.fit[0], ".15e", aka=["function_value", "value"])
        keep("axis ratio", es.countiter, es.D.max() / es.D.min(), ".1e", aka=["axis_ratio"], required=False); keep("sigma", es.countiter, es.sigma, ".2e", required=False)


@scenario("deap")
def deap_evolution():
    import random
    import numpy as np
    from deap import algorithms, base, creator, tools
    random.seed(0)
    creator.create("Cost", base.Fitness, weights=(-1.,)); creator.create("One", list, fitness=creator.Cost)
    t = base.Toolbox()
    t.register("one", tools.initRepeat, creator.One, lambda: random.uniform(-3, 3), 2)
    t.register("evaluate", lambda p: (bowl(*p),)); t.register("mate", tools.cxBlend, alpha=.3)
    t.register("mutate", tools.mutGaussian, mu=0, sigma=.3, indpb=.5); t.register("select", tools.selTournament, tournsize=3)
    stats = tools.Statistics(lambda p: p.fitness.values[0])
    for name, f in (("avg", np.mean), ("std", np.std), ("min", np.min)):
        stats.register(name, f)
    _, log = algorithms.eaSimple(tools.initRepeat(list, t.one, 30), t, .6, .3, 10, stats, verbose=True)
    for e in log:
        for k in ("avg", "std", "min"):
            keep(k, e["gen"], e[k], ".6g", required=k != "std")
        keep("nevals", e["gen"], e["nevals"], ".6g", required=False)
