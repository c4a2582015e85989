#!/bin/sh
# Builds the Kubernetes of the tests (internal/k8srig) into the user's cache, once for
# each state of its sources: etcd, the control plane and the kubelet in one program, and
# the operators. From an empty build cache that is ten minutes of a core.
set -eu
cd "$(dirname "$0")/../k8srig"
to=${DLWB_K8SRIG:-${XDG_CACHE_HOME:-$HOME/.cache}/dlwb/k8srig}
operators='github.com/kubeflow/training-operator github.com/kubeflow/trainer/v2 sigs.k8s.io/jobset sigs.k8s.io/kueue
	github.com/kubeflow/mpi-operator github.com/ray-project/kuberay/ray-operator'
state=$(find . -type f ! -path './testdata/*' -exec sha256sum {} + | sort | sha256sum | cut -c1-64)
if [ -x "$to/rig" ] && [ "$(cat "$to/state" 2>/dev/null)" = "$state" ]; then exit 0; fi
mkdir -p "$to"
rm -f "$to/state"
unset GOFLAGS
echo "building the Kubernetes of the tests into $to (minutes, once)" >&2
version='-X k8s.io/component-base/version.gitVersion=v1.35.4 -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=35'
CGO_ENABLED=0 go build -trimpath -gcflags=all=-dwarf=false '-gcflags=k8s.io/...=-l -dwarf=false' '-gcflags=sigs.k8s.io/...=-l -dwarf=false' \
	-ldflags "-s -w $version" -o "$to/" . github.com/kubeflow/training-operator/cmd/training-operator.v1 \
	github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager sigs.k8s.io/jobset sigs.k8s.io/kueue/cmd/kueue \
	github.com/kubeflow/mpi-operator/cmd/mpi-operator github.com/ray-project/kuberay/ray-operator
mv "$to/k8srig" "$to/rig"
# shellcheck disable=SC2086 # one word each
go list -m -f '{{.Path}}={{.Dir}}' $operators | paste -sd, - >"$to/modules"
mkdir -p "$to/bin"
cp nvidia-smi ray "$to/bin/"
chmod 755 "$to/bin/nvidia-smi" "$to/bin/ray"
echo "$state" >"$to/state"
