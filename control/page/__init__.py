"""The web page of a cluster: plain HTML, styles and scripts, and the code that serves them."""
