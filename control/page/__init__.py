"""The page of a cluster for people: plain HTML, styles and scripts, and how they are served."""
