"""Scenarios of what learns without a network: boosting, mixtures, embeddings, topic models."""
import logging
import sys

from scenario import blobs, scenario
from truth import keep


@scenario("scikit-learn")
def sklearn_histogram_boosting():
    from sklearn.ensemble import HistGradientBoostingClassifier
    x, y = blobs(classes=2)
    m = HistGradientBoostingClassifier(max_iter=15, verbose=2, early_stopping=True, validation_fraction=.3, n_iter_no_change=50, scoring="loss", random_state=0).fit(x, y)
    for i in range(1, 16):
        keep("train/loss", i, -m.train_score_[i], ".5f"); keep("val/loss", i, -m.validation_score_[i], ".5f")


@scenario("scikit-learn")
def sklearn_rbm():
    from sklearn.neural_network import BernoulliRBM
    x, _ = blobs()
    m = BernoulliRBM(8, n_iter=12, verbose=1, random_state=0)
    score, told = m.score_samples, []
    m.score_samples = lambda v: told.append(score(v)) or told[-1]
    m.fit((x > 0).astype("float32"))
    for i, v in enumerate(told):
        keep("pseudo-likelihood", i + 1, v.mean(), ".2f")


@scenario("ngboost")
def ngboost():
    import numpy as np
    from ngboost import NGBRegressor
    x, y = blobs(); v, w = blobs(200, seed=9)
    m = NGBRegressor(n_estimators=40, verbose_eval=10, random_state=0)
    grad, lengths = m.Manifold.grad, []
    def measured(self, *a, **how):
        g = grad(self, *a, **how); lengths.append(np.linalg.norm(g, axis=1).mean()); return g
    m.Manifold.grad = measured
    m.fit(x, y + .1 * x[:, 0], v, w + .1 * v[:, 0])
    r = m.evals_result
    for i in range(0, 40, 10):
        keep("loss", i, r["train"]["LOGSCORE"][i], ".4f"); keep("val/loss", i, r["val"]["LOGSCORE"][i], ".4f")
        keep("scale", i, m.scalings[i], ".4f", required=False)
        keep("norm", i, lengths[i] * m.scalings[i], ".4f", aka=["grad_norm"], required=False)


@scenario("mlxtend")
def mlxtend_perceptron():
    from mlxtend.classifier import MultiLayerPerceptron
    x, y = blobs()
    m = MultiLayerPerceptron(hidden_layers=[8], eta=.05, epochs=20, minibatches=4, print_progress=3, random_seed=0).fit(x, y)
    for i, v in enumerate(m.cost_):
        keep("cost", i + 1, v, ".2f", count_min=15, count_max=20)


@scenario("hmmlearn")
def hmmlearn_gaussian():
    from hmmlearn.hmm import GaussianHMM
    x, _ = blobs(300, 2)
    m = GaussianHMM(3, n_iter=12, tol=0, verbose=True, random_state=0).fit(x)
    told = list(m.monitor_.history)
    for i, v in enumerate(told):
        keep("log_likelihood", i + 1, v, ".8f", aka=["logprob", "log_prob", "score", "likelihood"])
        keep("improvement", i + 1, v - told[i - 1] if i else float("nan"), ".8f", aka=["delta"], required=False)


@scenario("gensim")
def gensim_lda():
    import numpy as np
    from gensim.corpora import Dictionary
    from gensim.models import LdaModel
    from gensim.models.callbacks import PerplexityMetric
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s : %(levelname)s : %(message)s")
    r = np.random.default_rng(0)
    texts = [[f"w{int(k)}" for k in r.integers(0, 30, 20) % (10 + 10 * (i % 3))] for i in range(60)]
    d = Dictionary(texts); bow = [d.doc2bow(t) for t in texts]
    class Keep(PerplexityMetric):
        def get_value(self, **how):
            v = super().get_value(**how)
            keep("perplexity", len(told), v, ".17g", aka=["perplexity estimate"]); told.append(v)
            return v
    told = []
    LdaModel(bow, id2word=d, num_topics=3, passes=6, eval_every=None, random_state=0, callbacks=[Keep(corpus=bow, logger="shell", title="Perplexity")])


@scenario("implicit")
def implicit_bpr():
    import numpy as np
    import scipy.sparse as sp
    from implicit.bpr import BayesianPersonalizedRanking
    r = np.random.default_rng(0)
    x = sp.csr_matrix((r.random((80, 60)) < .1).astype("float32"))
    m = BayesianPersonalizedRanking(factors=8, iterations=20, num_threads=1, random_state=0)
    def told(epoch, _, correct, skipped):
        # Its bar may leave out frames.
        for name, v in (("train/auc", correct / (x.nnz - skipped)), ("skipped", skipped / x.nnz)):
            keep(name, epoch + 1, 100 * v, ".2f", aka=[name.replace("/", "_")], count_min=1, count_max=20, required=False)
    m.fit(x, callback=told)


@scenario("spacy")
def spacy_textcat():
    import spacy
    from spacy.training import Example
    from spacy.training.loggers import console_logger
    from spacy.training.loop import train
    from spacy.util import load_config_from_str  # noqa: F401: the form of its own configurations
    nlp = spacy.blank("en")
    nlp.config["training"]["max_steps"], nlp.config["training"]["eval_frequency"] = 60, 10
    good, bad = ["good", "fine", "great"], ["bad", "poor", "awful"]
    def examples(n):
        for i in range(n):
            w = (good if i % 2 else bad)[i // 2 % 3]
            yield Example.from_dict(nlp.make_doc(f"this is {w} number {i % 7}"), {"cats": {"pos": float(i % 2), "neg": 1. - i % 2}})
    @spacy.registry.readers("corpus.blobs.v1")
    def make(n: int):
        return lambda _: examples(n)
    @spacy.registry.loggers("corpus.keep.v1")
    def logger():
        inner = console_logger(progress_bar=False)
        def setup(nlp, stdout=sys.stdout, stderr=sys.stderr):
            log, end = inner(nlp, stdout, stderr)
            def step(info):
                if info is not None:
                    keep("loss textcat", info["step"], info["losses"]["textcat"], ".2f", aka=["loss_textcat", "textcat/loss", "loss/textcat"])
                    keep("cats_score", info["step"], info["other_scores"]["cats_score"] * 100, ".2f")
                    keep("score", info["step"], info["score"], ".2f")
                log(info)
            return step, end
        return setup
    nlp.add_pipe("textcat")
    nlp.config["corpora"] = {"train": {"@readers": "corpus.blobs.v1", "n": 40}, "dev": {"@readers": "corpus.blobs.v1", "n": 20}}
    nlp.config["training"]["logger"] = {"@loggers": "corpus.keep.v1"}
    nlp.config["training"]["train_corpus"], nlp.config["training"]["dev_corpus"] = "corpora.train", "corpora.dev"
    nlp.initialize(lambda: examples(40))
    train(nlp, None)
