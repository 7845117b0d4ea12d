"""Reports made from the tables: figures, pages, comparisons."""
