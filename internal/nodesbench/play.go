package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/remote/environment"
)

// requirements are met by Debian's own packages (python3-numpy, python3-yaml),
// so that nothing is downloaded and both sides do the same.
const requirements = "--no-index\nnumpy>=1.20\nPyYAML>=5\n"

// playbook is the article's: a virtual environment that sees the system's
// packages, the requirements, and what they ask for.
const playbook = `- hosts: all
  tasks:
    - file: {path: "{{ ansible_env_home }}/bench", state: directory}
    - command:
        cmd: %[1]s -m venv --system-site-packages {{ ansible_env_home }}/bench/venv
        creates: "{{ ansible_env_home }}/bench/venv/bin/python"
    - copy: {src: %[2]s, dest: "{{ ansible_env_home }}/bench/requirements.txt"}
    - pip:
        requirements: "{{ ansible_env_home }}/bench/requirements.txt"
        virtualenv: "{{ ansible_env_home }}/bench/venv"
  vars:
    ansible_env_home: /home/ubuntu
`

// onNode runs lines for environment.Prepare.
type onNode struct{ *remote.Node }

func (o onNode) Exec(ctx context.Context, line string) (int, []byte, []byte, error) {
	res, err := o.Node.Exec(ctx, remote.Cmd{Line: line})
	return res.ExitCode, res.Stdout, res.Stderr, err
}

// prepare is dlwb's environment step. skipped is whether it should find
// nothing to do.
func (b *bench) prepare(nodes []*remote.Node, skipped bool) error {
	spec := environment.Spec{Kind: environment.Venv, Cluster: "bench", File: "requirements.txt", Content: requirements}
	return each(nodes, func(_ int, n *remote.Node) error {
		r, err := environment.Prepare(b.ctx, onNode{n}, spec, func(string) {})
		if err == nil && r.Skipped != skipped {
			err = fmt.Errorf("%s: skipped is %v: %s", n.Name(), r.Skipped, r.Text)
		}
		return err
	})
}

// measureEnvironment takes the play on 8 nodes. `remote` begins without any
// connection; Ansible has its own kept open where nothing changed.
func measureEnvironment(b *bench) error {
	n := b.least(8)
	a, err := b.ansible(lan, n)
	if err != nil {
		return err
	}
	list, err := b.file("requirements.txt", requirements)
	if err != nil {
		return err
	}
	play, err := b.file("play.yml", fmt.Sprintf(playbook, systemPython, list))
	if err != nil {
		return err
	}
	byAnsible := func() error {
		out, err := b.shell(a.env, "ansible-playbook", play)
		if err == nil && strings.Count(out, "failed=0") != n {
			err = fmt.Errorf("ansible did not answer for %d nodes: %.300s", n, out)
		}
		return err
	}
	b.playFirst(n, a, byAnsible)
	return errors.Join(b.playAgain(n, a, byAnsible), a.cold())
}

// fresh does something with nodes that have no connection yet.
func (b *bench) fresh(net network, n int, do func([]*remote.Node) error) error {
	nodes, err := b.nodes(net, n)
	if err != nil {
		return err
	}
	defer closeAll(nodes)
	return do(nodes)
}

func (b *bench) playFirst(n int, a *ansible, byAnsible func() error) {
	b.race(fmt.Sprintf("first-lan-%d", n),
		racer{
			name:  "remote",
			ready: func() error { return b.onHosts(n, "rm -rf dlwb .dlwb") },
			run: func() error {
				return b.fresh(lan, n, func(nodes []*remote.Node) error { return b.prepare(nodes, false) })
			},
		},
		racer{
			name: "ansible", missing: a.gone, least: 5, rounds: max(1, b.rounds/2), run: byAnsible,
			ready: func() error { return errors.Join(a.cold(), b.onHosts(n, "rm -rf bench .ansible")) },
		})
}

func (b *bench) playAgain(n int, a *ansible, byAnsible func() error) error {
	name := fmt.Sprintf("unchanged-lan-%d", n)
	if !b.wants(name) {
		return nil
	}
	open, err := b.nodes(lan, n)
	if err != nil {
		return err
	}
	defer closeAll(open)
	// Both have done it once; for both the second time counts.
	if err := errors.Join(b.onHosts(n, "rm -rf dlwb .dlwb"), b.prepare(open, false), b.prepare(open, true)); err != nil {
		return err
	}
	if a.gone == "" {
		if err := byAnsible(); err != nil {
			a.gone = err.Error()
		}
	}
	b.race(name,
		racer{name: "remote", run: func() error {
			return b.fresh(lan, n, func(nodes []*remote.Node) error { return b.prepare(nodes, true) })
		}},
		racer{name: "ansible", missing: a.gone, least: 50, rounds: max(1, b.rounds/2), run: byAnsible},
		racer{name: "remote-open", run: func() error { return b.prepare(open, true) }})
	return nil
}
