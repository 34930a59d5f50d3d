package store_test

const crashDirEnv = "STORE_CRASH_DIR"

func crashHelper(string) int { return 0 }
