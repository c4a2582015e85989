package sagemaker

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/about"
	"github.com/dlwb/dlwb/cloud/sagemaker/options"
)

// quoted is a text as Python's json.dumps writes it: the official SDK sends every
// hyperparameter so, and the toolkits read them so.
func quoted(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\b':
			b.WriteString(`\b`)
		case r == '\f':
			b.WriteString(`\f`)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		case r < ' ' || r > '~':
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// encoded is a hyperparameter as JSON. What reads back as the very same text goes as
// a number or a truth, as a user of the SDK would write it; all else is a text: the
// script sees what was typed.
func encoded(text string) string {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && strconv.FormatInt(n, 10) == text {
		return text
	}
	if f, err := strconv.ParseFloat(text, 64); err == nil && f-f == 0 && pythonFloat(f) == text {
		return text
	}
	return quoted(text)
}

// pythonFloat is repr of a float: shortest digits, and an exponent where it is far
// from 0.
func pythonFloat(f float64) string {
	text := strconv.FormatFloat(f, 'f', -1, 64)
	if a := max(f, -f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	if !strings.ContainsAny(text, ".nN") {
		text += ".0"
	}
	return text
}

// script is a command as script mode has it.
type script struct {
	program string
	hyper   map[string]string // as typed
}

// scriptOf makes hyperparameters of a command: all that script mode can hand over is
// --NAME VALUE.
func scriptOf(command []string) (script, error) {
	s := script{hyper: map[string]string{}}
	words := command
	if len(words) > 0 && strings.HasPrefix(path.Base(words[0]), "python") {
		words = words[1:]
		for len(words) > 0 && words[0] == "-u" {
			words = words[1:]
		}
	}
	if len(words) == 0 || !strings.HasSuffix(words[0], ".py") && !strings.HasSuffix(words[0], ".sh") || path.IsAbs(words[0]) {
		return s, cantScript(strings.Join(command, " "), "it is not a script of the code directory")
	}
	s.program, words = path.Clean(words[0]), words[1:]
	for len(words) > 0 {
		name, value, has := strings.Cut(strings.TrimLeft(words[0], "-"), "=")
		dashes := len(words[0]) - len(strings.TrimLeft(words[0], "-"))
		one := dashes == 1 && len(name) == 1
		switch {
		case dashes != 2 && !one || name == "":
			return s, cantScript(words[0], "it is no --NAME VALUE")
		case dashes == 2 && len(name) == 1:
			return s, cantScript(words[0], "the toolkit gives a name of one letter with one dash")
		case s.has(name):
			return s, cantScript("--"+name, "it comes twice")
		}
		words = words[1:]
		if !has {
			if len(words) == 0 || strings.HasPrefix(words[0], "-") && !isNumber(words[0]) {
				return s, cantScript("--"+name, "it has no value")
			}
			value, words = words[0], words[1:]
		}
		s.hyper[name] = value
	}
	return s, nil
}

func (s script) has(name string) bool { _, is := s.hyper[name]; return is }

func isNumber(text string) bool { _, err := strconv.ParseFloat(text, 64); return err == nil }

func cantScript(what, why string) error {
	return &plainError{fmt.Sprintf("%s: script mode can't hand that over: %s", what, why),
		"have the script take --NAME VALUE only, or leave machines.estimator out: then dlwb starts any command"}
}

// noRestarts is said of run.restarts with an estimator.
const (
	noRestarts     = "with machines.estimator the toolkit in the image starts the ranks, and starts none of them again (run.restarts)"
	noRestartsNext = "leave machines.estimator out: then dlwb has torchrun do it; or leave out run.restarts"
)

// hyperOf are the hyperparameters of an estimator.
func hyperOf(j cloud.Job, r ref, source string) (map[string]string, error) {
	m := about.Own[options.Machines](j.Spec.Own)
	if j.Restarts {
		return nil, &plainError{noRestarts, noRestartsNext}
	}
	s, err := scriptOf(j.Command)
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, from := range []map[string]string{s.hyper, m.Hyper} {
		for name, value := range from {
			all[name] = encoded(value)
		}
	}
	maps.Copy(all, map[string]string{
		"sagemaker_program": quoted(s.program), "sagemaker_submit_directory": quoted(source), "sagemaker_container_log_level": "20",
		"sagemaker_job_name": quoted(r.Name), "sagemaker_region": quoted(r.Region)})
	maps.Copy(all, distributed(distributionOf(j, m), m, j.Spec.Instance))
	return all, nil
}

// distributionOf is how the toolkit is to start the ranks: what the profile says, or
// what fits the engine.
func distributionOf(j cloud.Job, m options.Machines) string {
	if m.Distribution != "" {
		return m.Distribution
	}
	several := j.Replicas > 1 || len(j.Ranks) > 1
	switch {
	case m.Estimator == options.PyTorch && several && slices.Contains([]string{"torchrun", "accelerate", "lightning"}, j.Engine):
		return options.TorchDistributed
	case m.Estimator == options.TensorFlow && several && j.Engine == "tensorflow":
		return options.Mirrored
	}
	return ""
}

// distributed are the hyperparameters of a distribution, as the official SDK makes
// them.
func distributed(way string, m options.Machines, instance string) map[string]string {
	mpi := strings.Join(m.MPIOptions, " ")
	switch way {
	case options.TorchDistributed:
		return map[string]string{"sagemaker_torch_distributed_enabled": "true", "sagemaker_instance_type": quoted(instance)}
	case options.ParameterServer:
		return map[string]string{"sagemaker_parameter_server_enabled": "true"}
	case options.Mirrored:
		return map[string]string{"sagemaker_multi_worker_mirrored_strategy_enabled": "true"}
	case options.MPI:
		return map[string]string{"sagemaker_mpi_enabled": "true", "sagemaker_mpi_num_of_processes_per_host": strconv.Itoa(max(m.MPIProcesses, 1)),
			"sagemaker_mpi_custom_mpi_options": quoted(mpi)}
	case options.DataParallel, options.PyTorchDDP: // the SDK sends the same for both
		return map[string]string{"sagemaker_distributed_dataparallel_enabled": "true",
			"sagemaker_distributed_dataparallel_custom_mpi_options": quoted(mpi), "sagemaker_instance_type": quoted(instance)}
	}
	return nil
}
