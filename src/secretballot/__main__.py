"""Run the program by `python -m secretballot`."""

from secretballot.cli import main

if __name__ == "__main__":
    main()
