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


@scenario("bayesian-optimization")
def bayesian_optimization():
    from bayes_opt import BayesianOptimization
    o = BayesianOptimization(lambda a, b: -bowl(a, b), {"a": (-3, 3), "b": (-3, 3)}, random_state=0, verbose=2)
    o.maximize(init_points=3, n_iter=6)
    for i, r in enumerate(o.res):
        keep("target", i + 1, r["target"], ".7g")
        for k in "ab":
            keep(k, i + 1, r["params"][k], ".7g", required=False)


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
        for more in ("axis ratio", "sigma"):
            keep(more, es.countiter, 0, ".2e", required=False, count_min=1, count_max=12)


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


@scenario("gplearn")
def gplearn_symbols():
    from gplearn.genetic import SymbolicRegressor
    x, _ = blobs(100)
    m = SymbolicRegressor(60, generations=6, verbose=1, random_state=0).fit(x, x[:, 0] * x[:, 1])
    d = m.run_details_
    for i in d["generation"]:
        keep("fitness", i, d["best_fitness"][i], ".6g", aka=["best/fitness", "best_fitness", "individual/fitness", "average_fitness", "population_average_fitness"], required=False)
        keep("length", i, d["average_length"][i], ".2f", required=False)
        keep("oob fitness", i, d["best_oob_fitness"][i], ".6g", required=False)


@scenario("keras-tuner", "keras", "torch")
def keras_tuner():
    import os
    os.environ["KERAS_BACKEND"] = "torch"
    import keras
    import keras_tuner
    keras.utils.set_random_seed(0)
    x, y = blobs()
    def build(hp):
        m = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(hp.Int("units", 4, 32, 4)), keras.layers.Dense(3)])
        m.compile(keras.optimizers.Adam(.01), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        return m
    t = keras_tuner.RandomSearch(build, "val_loss", max_trials=5, seed=0, directory="/tmp/corpus-tuner", overwrite=True)
    t.search(x, y, validation_split=.3, epochs=2, verbose=2)
    for trial in t.oracle.trials.values():
        for name in ("loss", "val/loss"):
            for e in range(2):
                v = trial.metrics.metrics[name.replace("/", "_")].get_history()
                keep(name, e + 1, v[min(e, len(v) - 1)].value[0], ".4f", required=False, x_strict=False, count_min=1, count_max=20)
