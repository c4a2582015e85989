package lexis

// Snake writes camelCase as snake_case.
func Snake(name string) string {
	var b []byte
	for i := range len(name) {
		c := name[i]
		if c >= 'A' && c <= 'Z' {
			if i > 1 && isLower(name[i-1]) && (isLower(name[i-2]) || i == 2 && len(name) >= i+3) {
				b = append(b, '_')
			}
			c += 'a' - 'A'
		}
		b = append(b, c)
	}
	return string(b)
}

func isLower(c byte) bool { return c >= 'a' && c <= 'z' }
