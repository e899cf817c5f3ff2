"""`python -m secretballot.publishing`: the process in which releases are made; started by the
program, not by hand."""

from secretballot.publishing.serving import serve

if __name__ == "__main__":
    serve()
