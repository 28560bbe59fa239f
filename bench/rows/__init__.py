"""The rows of the scoreboard: a file for each workload, with its contestants, sizes and aims in `ROWS`."""
