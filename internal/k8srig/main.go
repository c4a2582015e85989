// Command rig is a Kubernetes cluster on one machine, for tests: etcd, API server,
// controller manager, scheduler and a kubelet that runs processes, all in this one
// program, with the real operators beside it. "rig up" starts them all and keeps
// them until its input ends.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	manager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"

	"github.com/dlwb/dlwb/internal/k8srig/kubelet"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: rig up|etcd|kube-apiserver|kube-controller-manager|kube-scheduler|kubelet|connect …")
		os.Exit(2)
	}
	part := os.Args[1]
	os.Args = append([]string{part}, os.Args[2:]...)
	var c *cobra.Command
	switch part {
	case "up":
		exit(up(os.Args[1:]))
	case "kubelet":
		exit(node(os.Args[1:]))
	case "connect":
		exit(connect(os.Args[1]))
	case "etcd":
		etcdmain.Main(os.Args)
		return
	case "kube-apiserver":
		c = apiserver.NewAPIServerCommand()
	case "kube-controller-manager":
		c = manager.NewControllerManagerCommand()
	case "kube-scheduler":
		c = scheduler.NewSchedulerCommand()
	default:
		exit(fmt.Errorf("there is no part %q", part))
	}
	os.Exit(cli.Run(c))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "rig:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func node(args []string) error {
	var o kubelet.Options
	flags := flag.NewFlagSet("kubelet", flag.ExitOnError)
	flags.StringVar(&o.Kubeconfig, "kubeconfig", "", "")
	flags.StringVar(&o.Node, "node", "gpu-0", "")
	flags.StringVar(&o.Root, "root", "", "where the pods lie")
	flags.StringVar(&o.Bridge, "bridge", "dlwbk8s0", "")
	flags.StringVar(&o.Net, "net", "10.244.7", "")
	flags.StringVar(&o.Bin, "bin", "", "goes before PATH in the pods")
	flags.IntVar(&o.Port, "port", 20250, "")
	flags.IntVar(&o.GPUs, "gpus", 4, "")
	flags.Int64Var(&o.LogMax, "logmax", 10<<20, "a container's log is rotated at this size")
	_ = flags.Parse(args)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return kubelet.Run(ctx, o)
}

// connect passes its input to an address and back.
func connect(addr string) error {
	conn, err := net.Dial("tcp4", addr)
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(conn, os.Stdin)
		_ = conn.(*net.TCPConn).CloseWrite()
	}()
	_, err = io.Copy(os.Stdout, conn)
	return err
}
