"""in_terminal.py WIDTH PROGRAM ARGUMENT ... - run a program with stderr in a pseudo-terminal of this width and tell how its
lines looked there, as JSON: lines that scrolled, lines drawn (each carriage return begins one), the width of the
widest that tells the time left, the last one, and seconds. The terminal's type is that of TERM; a width of 0 is one that the terminal does not know."""
import fcntl, json, os, pty, re, struct, subprocess, sys, termios, time

width = int(sys.argv[1])
master, slave = pty.openpty()
fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
start = time.time()
child = subprocess.Popen(sys.argv[2:], stdout=subprocess.DEVNULL, stderr=slave, stdin=subprocess.DEVNULL)
os.close(slave)
text = b""
while True:
    try:
        piece = os.read(master, 65536)
    except OSError:
        break
    if not piece:
        break
    text += piece
status = child.wait()
seconds = time.time() - start
text = text.decode()
plain = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text).replace("\r\n", "\n")
drawn = [piece for line in plain.split("\n") for piece in line.split("\r")]
print(json.dumps({"status": status, "seconds": seconds, "scrolled": plain.count("\n"), "drawn": plain.count("\r"),
                  "widest": max([len(d) for d in drawn if "ETA" in d], default=0), "eta": sum("ETA" in d for d in drawn), "escapes": text.count("\x1b"),
                  "last": plain.split("\n")[-2] if "\n" in plain else "", "text": plain[-2000:]}))
