"""Which pooling layer, and which λ? scikit-learn's grid search over TAPClassifier, on NetworkX graphs."""

import networkx as nx
import numpy as np
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split

from tapnet import TAPClassifier


def conversation(family: str, rng: np.random.Generator) -> nx.Graph:
    """Who wrote to whom: nodes are people by name, and each has a role that says nothing about the family."""
    n = int(rng.integers(8, 16))
    if family == "broadcast":
        graph = nx.star_graph(n - 1)
    elif family == "round table":
        graph = nx.watts_strogatz_graph(n, 4, 0.2, seed=int(rng.integers(1 << 30)))
    else:
        graph = nx.random_labeled_tree(n, seed=int(rng.integers(1 << 30)))
    roles = {i: str(rng.choice(["guest", "member", "host"])) for i in graph}
    nx.set_node_attributes(graph, roles, "role")
    return nx.relabel_nodes(graph, {i: f"person {i + 1}" for i in graph})


def main() -> None:
    rng = np.random.default_rng(0)
    y = ["broadcast", "round table", "thread"] * 40
    graphs = [conversation(family, rng) for family in y]
    train, test, y_train, y_test = train_test_split(graphs, y, test_size=0.25, stratify=y, random_state=0)

    grid = [{"pool": ["tap"], "connectivity": [0.0, 0.1, 1.0]}, {"pool": ["topk", "none"]}]  # λ is TAP's alone
    model = TAPClassifier(node_label="role", epochs=20, batch_size=32, lr=0.005, dropout=0.1, random_state=0)
    search = GridSearchCV(model, grid, cv=StratifiedKFold(3, shuffle=True, random_state=0)).fit(train, y_train)

    print(f"accuracy, mean ± standard deviation over 3 stratified folds of {len(train)} graphs, 20 epochs, last epoch:")
    found = search.cv_results_
    for params, mean, std in zip(found["params"], found["mean_test_score"], found["std_test_score"], strict=True):
        print(f"  {100 * mean:5.1f} ± {100 * std:4.1f} %  {', '.join(f'{k} {v}' for k, v in params.items())}")
    chosen = ", ".join(f"{k} {v}" for k, v in search.best_params_.items())
    print("Differences within that spread say nothing; the search takes the first of the highest.")
    print(f"Taken, and trained again on all {len(train)}: {chosen}.")
    print(f"On the {len(test)} graphs that the search never saw: {100 * search.score(test, y_test):.1f} %")


if __name__ == "__main__":
    main()
