package job

// SignalOf is the name of the signal that an exit code stands for, as a shell says it
// (128 and its number); empty: it stands for none.
func SignalOf(code int) string {
	return map[int]string{128 + 1: "HUP", 128 + 2: "INT", 128 + 3: "QUIT", 128 + 4: "ILL", 128 + 6: "ABRT", 128 + 7: "BUS",
		128 + 8: "FPE", 128 + 9: "KILL", 128 + 11: "SEGV", 128 + 13: "PIPE", 128 + 15: "TERM"}[code]
}
