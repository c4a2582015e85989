package environment

import "context"

// Probe says which interpreter a node has and would be used with kind system.
// Unlike Prepare it changes nothing but the file in which it keeps what the
// interpreters said, for the next look: keep, or where that is empty the node's.
func Probe(ctx context.Context, run Runner, python, keep string) (Result, error) {
	p := preparer{run: run, keep: keep, spec: Spec{Kind: System, Python: python}, progress: func(string) {}, dirs: usualDirs, onlyLook: true}
	n, err := p.probe(ctx)
	if err != nil {
		return Result{}, err
	}
	if n, err = p.withVersion(ctx, n); err != nil {
		return Result{}, err
	}
	base, err := n.choose(python)
	if err != nil {
		return Result{}, err
	}
	r := p.systemResult(n, base)
	r.Python, r.Version, r.Torch, r.Home = base.Exe, base.Version, base.Torch, n.home
	return r, nil
}

// usualDirs are looked into after the PATH. Machine images for deep learning keep
// the Python that has PyTorch in /opt; the others are where people install one in
// their home, and have it on the PATH of their own terminal only.
const usualDirs = "/usr/bin:/usr/local/bin:/opt/pytorch/bin:/opt/conda/bin:" +
	"/opt/miniconda3/bin:/opt/miniforge3/bin:/opt/anaconda3/bin:" +
	"miniconda3/bin:miniforge3/bin:mambaforge/bin:anaconda3/bin:miniconda/bin:anaconda/bin:micromamba/bin:.pyenv/shims:.local/bin"
