"""Lets PyTorch 1.13 work on Python 3.11, where one of its modules can't be
imported: a dataclass there has a default that Python refuses since 3.11.

dlwb puts this directory on the PYTHONPATH of a run when it found that module
with that fault. It changes no file: it waits for the one module and mends its
text on the way in. Any other sitecustomize still runs.
"""
import sys

_MODULE = "torch.distributed._shard.sharded_tensor.metadata"
_FAULT = b"field(default=TensorProperties())"
_CURE = b"field(default_factory=TensorProperties)"


class _Mend:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != _MODULE:
            return None
        from importlib.machinery import PathFinder, SourceFileLoader

        class Mended(SourceFileLoader):
            def get_code(self, fullname):  # past the cache of compiled files
                source = self.get_data(self.path).replace(_FAULT, _CURE)
                return compile(source, self.path, "exec", dont_inherit=True)

        spec = PathFinder.find_spec(name, path)
        if spec is None or type(spec.loader) is not SourceFileLoader:
            return None
        loader = Mended(spec.loader.name, spec.loader.path)
        if _FAULT not in loader.get_data(loader.path):
            return None
        spec.loader = loader
        return spec


def _run_the_next():
    """Runs the sitecustomize that this one stands in front of."""
    import os
    from importlib._bootstrap import module_from_spec  # importlib.util costs 5 ms
    from importlib._bootstrap_external import PathFinder

    here = os.path.realpath(os.path.dirname(__file__))
    rest = [p for p in sys.path if os.path.realpath(p) != here]
    spec = PathFinder.find_spec("sitecustomize", rest)
    if spec is not None and spec.loader is not None:
        sys.modules["sitecustomize"] = module = module_from_spec(spec)
        spec.loader.exec_module(module)


if sys.version_info >= (3, 11):
    sys.meta_path.insert(0, _Mend)
_run_the_next()
