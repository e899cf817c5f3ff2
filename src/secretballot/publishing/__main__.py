"""`python -m secretballot.publishing`: the process that makes releases, started by the program."""

from secretballot.publishing.process import serve

if __name__ == "__main__":
    serve()
