"""K-means over fragments of points, with a checkpoint of every fragment in every iteration."""
