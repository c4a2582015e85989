// Package localjob is a provider of tests that takes whole jobs: it copies the
// code, waits in a queue, and runs the ranks as processes of this machine, under
// a supervisor of its own. Its logs are read by tokens, and it can do nothing
// else: no exec, no ports, no telemetry, no files. It stands for the services
// that dlwb has no ssh to, and is no part of the program.
package localjob
