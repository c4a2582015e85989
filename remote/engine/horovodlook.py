"""Prints "gloo" where the Horovod of this Python can use Gloo and no MPI."""
import glob
import importlib.util
import os
import shutil

spec = importlib.util.find_spec("horovod")
libraries = [open(name, "rb").read() for top in spec and spec.submodule_search_locations or [] for name in glob.glob(os.path.join(top, "*", "mpi_lib*.so"))]
mpi = shutil.which("mpirun") and all(b"libmpi" in text for text in libraries)
if not mpi and libraries and all(b"gloo" in text for text in libraries):
    print("gloo")
