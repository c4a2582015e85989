"""Writes sdk.json: what Kubeflow's own client sends for two trainings, without their
commands. pip install kubeflow-training==1.9.3 kubernetes==31.0.0"""

import http.server
import json
import threading

from kubeflow.training import TrainingClient
from kubernetes import client

sent = []


class Server(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        sent.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.answer(sent[-1], 201)

    def do_GET(self):
        self.answer({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": []}, 200)

    def answer(self, what, code):
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(what).encode())


def train():
    pass


def stripped(what):
    if isinstance(what, dict):
        return {k: stripped(v) for k, v in what.items() if k not in ("args", "command")}
    return [stripped(v) for v in what] if isinstance(what, list) else what


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
training = TrainingClient(client_configuration=client.Configuration(host="http://127.0.0.1:%d" % server.server_port), namespace="team")
for kind in "PyTorchJob", "TFJob":
    servers = 1 if kind == "TFJob" else None
    training.create_job(name="run", job_kind=kind, base_image="pytorch/pytorch:2.7.1", train_func=train, num_workers=2, queue_name="gpus",
                        num_chief_replicas=servers, num_ps_replicas=servers, resources_per_worker={"gpu": "2", "cpu": "4", "memory": "8Gi"})
with open("sdk.json", "w") as f:
    f.write(json.dumps(stripped(sent), indent=1, sort_keys=True) + "\n")
