"""Says what a node has, as one JSON object: driver, frameworks and what they see,
disk, memory, shared memory, clock. Nothing here needs a package."""
import json, os, shutil, subprocess, sys, time

# It looks, perhaps beside a training: JAX would take three quarters of each GPU's memory
# with its first look at the devices, and TensorFlow all of it with its first use of one.
os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
os.environ["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"

out = {"time": time.time(), "python": sys.version.split()[0], "frameworks": {}, "gpus": []}


def query(*fields):
    try:
        r = subprocess.run(["nvidia-smi", "--query-gpu=" + ",".join(fields), "--format=csv,noheader,nounits"],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=20, text=True)
        return [l.split(", ") for l in r.stdout.splitlines() if l.strip()], (r.stderr or r.stdout).strip() if r.returncode else ""
    except FileNotFoundError:
        return [], ""
    except Exception as e:
        return [], str(e)


out["gpus"], out["driver_error"] = query("name", "driver_version", "memory.total")
try:
    out["disk_free"] = shutil.disk_usage(os.path.expanduser("~")).free
    out["shm"] = shutil.disk_usage("/dev/shm").total if os.path.isdir("/dev/shm") else 0
    with open("/proc/meminfo") as f:
        out["memory_free"] = next(int(l.split()[1]) * 1024 for l in f if l.startswith("MemAvailable"))
except (OSError, StopIteration):
    pass


def framework(name, look):
    try:
        out["frameworks"][name] = look()
    except ImportError:
        pass
    except Exception as e:
        out["frameworks"][name] = {"version": "", "error": "%s: %s" % (type(e).__name__, e)}


def torch():
    import torch
    return {"version": torch.__version__, "cuda": torch.version.cuda or "", "gpus": torch.cuda.device_count(), "works": torch.cuda.is_available(),
            "nccl": torch.distributed.is_available() and torch.distributed.is_nccl_available(), "gloo": torch.distributed.is_available()}


def tensorflow():
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf
    n = len(tf.config.list_physical_devices("GPU"))
    return {"version": tf.__version__, "cuda": tf.sysconfig.get_build_info().get("cuda_version", ""), "gpus": n, "works": n > 0}


def jax():
    import jax
    n = len([d for d in jax.devices() if d.platform in ("gpu", "cuda")])
    return {"version": jax.__version__, "cuda": "", "gpus": n, "works": n > 0}


framework("torch", torch)
framework("tensorflow", tensorflow)
framework("jax", jax)
print(json.dumps(out))
