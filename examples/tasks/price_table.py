"""A table of sales: GROUP BY and JOIN as linear maps, and the derivative of a weighted aggregate."""

import numpy as np

import riesz as rz


def table(rng, rows=200_000, shops=300, kinds=40):
    """Sales by shop and kind, and a table with the tax of each shop."""
    return {
        "shop": rng.integers(shops, size=rows),
        "kind": rng.integers(kinds, size=rows),
        "price": rng.lognormal(size=rows),
        "count": rng.integers(1, 9, size=rows).astype(float),
        "tax": rng.uniform(0.05, 0.25, size=shops),
    }


def by_numpy(discount, elasticity, t):
    """Revenue by kind after tax, where a discount on each kind raises what is sold; by np.bincount."""
    kinds = int(t["kind"].max()) + 1
    price = t["price"] * (1 - discount[t["kind"]])
    sold = t["count"] * (price / t["price"]) ** -elasticity
    return np.bincount(t["kind"], price * sold / (1 + t["tax"][t["shop"]]), kinds)


def by_relations(discount, elasticity, t):
    """The same with relations: each row has a kind and a shop, and joining with them is the adjoint of grouping."""
    R, _ = rz.relations.group_by(t["kind"])
    S, _ = rz.relations.group_by(t["shop"])
    price = t["price"] * (1 - rz.red(R.converse)(discount))
    sold = t["count"] * (price / t["price"]) ** -elasticity
    return rz.red(R)(price * sold / (1 + rz.red(S.converse)(t["tax"])))


def profit(discount, elasticity, t, cost=0.6):
    """Revenue less what the goods cost, as a smooth function of discounts."""
    sold = t["count"] * (1 - discount[t["kind"]]) ** -elasticity
    return np.sum(by_numpy(discount, elasticity, t)) - cost * np.sum(sold * t["price"])


def best_discounts(elasticity, t, rounds=20):
    """Newton's method; the Hessian is diagonal, since each row has one kind."""
    discount = np.zeros(int(t["kind"].max()) + 1)
    H = rz.hessian(lambda d: profit(d, elasticity, t))
    for _ in range(rounds):
        g = rz.grad(profit)(discount, elasticity, t)
        discount = discount - H(discount).solve(g)
    return discount


def main():
    """Revenue, its derivative, and the best discounts."""
    t = table(np.random.default_rng(0), 2_000_000)
    d = np.full(40, 0.1)
    revenue = by_numpy(d, 1.5, t)
    J = rz.jacobian(by_numpy)(d, 1.5, t)
    print(f"revenue {revenue.sum():.0f}; its derivative is {J.structure}")
    print("best discounts", np.round(best_discounts(2.5, t)[:5], 4))


if __name__ == "__main__":
    main()
